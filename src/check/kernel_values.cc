#include "check/kernel_values.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "check/identities.h"
#include "check/masks.h"
#include "check/over_rows.h"
#include "check/passed_shares.h"
#include "check/quotients.h"
#include "check/scales.h"
#include "check/turned.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

/// One run of a kernel over tensors whose dims are bound. A dim "..." has been replaced by the dims
/// of the piece.
class Run {
 public:
  Run(Nodes& nodes, Regions& regions, Rows& rows, const KernelCall& call)
      : nodes_(nodes), regions_(regions), rows_(rows), call_(call), kernel_(*call.kernel) {
    dims_.resize(kernel_.dims.size());
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      if (kernel_.dims[d].name == kAnyDims) any_ = static_cast<int>(d);
    }
  }

  /// `piece`: the tensor of a row that "..." stands for. `trouble`: why it cannot be right, if so.
  std::vector<Content> run(const std::vector<ContentView>& inputs, std::size_t piece,
                           const std::string& trouble) {
    trouble_ = trouble.empty() ? call_.trouble : trouble;
    made_.resize(kernel_.tensors.size());
    values_.resize(kernel_.tensors.size());
    for (std::size_t t = 0; t < values_.size(); ++t) values_[t] = &made_[t];
    for (std::size_t i = 0; i < inputs.size(); ++i) bind(inputs[i], i, piece);
    read_positions();
    if (call_.hides) causal_ = causal_places(kernel_);
    for (const Statement& s : kernel_.statements) {
      const std::size_t made = at(s.result.tensor);
      made_[made] = s.is_linear() ? linear(s) : function(s);
      if (is_hidden(s)) made_[made].items = {};
    }
    std::vector<Content> out(at(kernel_.outputs));
    for (int o = 0; o < kernel_.outputs; ++o) {
      const std::size_t t = at(kernel_.inputs + o);
      Content& content = out[at(o)];
      content.micro_batch = micro_batch_;
      if (has_any(kernel_.tensors[t].dims)) content.flat = flat_;
      Tensor& piece_made = content.pieces.emplace_back();
      piece_made = trouble_.empty() ? std::move(made_[t]) : odd(made_[t]);
      settle(piece_made, regions_);
      nodes_.share_beginning(piece_made.items);
    }
    return out;
  }

 private:
  /// A dim of the kernel: the logical dim it is bound to and how that is cut.
  struct Bound {
    int logical = -1;
    Splits cuts;
    bool known = false;
  };

  /// A part of a row of elements is one of these in the order of its dims: nothing is turned there.
  NodeOperand operand_of(NodeId node, const Operand& o) {
    NodeOperand own{node, opened(o.dims)};
    return flat_.empty() ? unturned(nodes_, std::move(own)) : own;
  }
  NodeMaker maker() const { return flat_.empty() ? call_.maker : NodeMaker::reference; }

  bool has_any(const std::vector<int>& dims) const { return any_ >= 0 && contains(dims, any_); }

  void trouble(const std::string& text) {
    if (trouble_.empty()) trouble_ = text;  // no text: none
  }

  /// A value that cannot be right, in the place of what was to be made.
  Tensor odd(const Tensor& instead) {
    Node node{.kind = Node::Kind::odd, .text = trouble_, .dims = instead.dims};
    for (const Item& item : instead.items) {
      node.operands.push_back({scaled(nodes_, item.node, instead.scales), {}});
    }
    Tensor out{.dims = instead.dims, .cuts = instead.cuts, .items = {}};
    out.items.push_back(nodes_.item_of(nodes_.add(node)));
    return out;
  }

  void bind(const ContentView& content, std::size_t i, std::size_t piece) {
    const std::vector<int>& formal = kernel_.tensors[i].dims;
    const std::size_t p = content.pieces.size() > 1 ? piece : 0;
    if (p >= content.pieces.size()) return trouble("nothing was written there");
    const Tensor& tensor = content.pieces[p];
    values_[i] = &tensor;
    if (content.micro_batch >= 0) {
      if (micro_batch_ >= 0 && micro_batch_ != content.micro_batch) {
        trouble("values of micro-batches " + std::to_string(micro_batch_) + " and " +
                std::to_string(content.micro_batch) + " meet");
      }
      micro_batch_ = content.micro_batch;
    }
    if (has_any(formal)) return bind_any(content, p);
    if (content.is_row()) return sees_part_of_row();
    if (formal.size() != tensor.dims.size()) return trouble("a tensor has another number of dims");
    for (std::size_t d = 0; d < formal.size(); ++d) {
      bind_dim(formal[d], tensor.dims[d], tensor.cuts[d]);
    }
  }

  void sees_part_of_row() {
    const auto whole = std::ranges::find_if(kernel_.statements,
                                            [](const Statement& s) { return !s.whole.empty(); });
    trouble(whole == kernel_.statements.end()
                ? "a part of a row of elements is used as a tensor"
                : "'" + whole->function + "' sees a part of a row of elements only");
  }

  void bind_any(const ContentView& content, std::size_t piece) {
    const Tensor& tensor = content.pieces[piece];
    const Splits flat = content.is_row() ? *content.flat : Splits{};
    if (!any_known_) {
      any_known_ = true;
      row_ = &content;
      piece_ = piece;
      any_dims_ = tensor.dims;
      any_cuts_ = tensor.cuts;
      any_opened_.resize(any_dims_.size());
      std::iota(any_opened_.begin(), any_opened_.end(), static_cast<int>(kernel_.dims.size()));
      flat_ = flat;
      return;
    }
    const bool same = any_dims_ == tensor.dims && any_cuts_ == tensor.cuts && flat_ == flat;
    if (!same) trouble("tensors that meet element by element are divided differently");
  }

  void bind_dim(int d, int logical, const Splits& cuts) {
    Bound& bound = dims_[at(d)];
    if (bound.known && bound.cuts != cuts) {
      return trouble("tensors that meet have different parts of '" + kernel_.dims[at(d)].name +
                     "'");
    }
    bound = {.logical = logical, .cuts = cuts, .known = true};
  }

  void read_results() {
    for (std::size_t o = 0; o < call_.results.size(); ++o) {
      const std::vector<int>& formal = kernel_.tensors[at(kernel_.inputs) + o].dims;
      if (has_any(formal) || formal.size() != call_.results[o].size()) continue;
      for (std::size_t d = 0; d < formal.size(); ++d) {
        Bound& bound = dims_[at(formal[d])];
        if (bound.logical >= 0) continue;
        bound.logical = call_.results[o][d].logical;
        bound.cuts = call_.results[o][d].cuts;
      }
    }
  }

  /// Where the code believes to be must be where its tensors are; what no tensor tells, it defines.
  void read_positions() {
    read_results();
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      const int like = kernel_.dims[d].like;
      if (dims_[d].logical < 0 && like >= 0) dims_[d] = dims_[at(like)];
    }
    for (int d : positions_of(kernel_)) {
      if (d == any_) return trouble("a function takes positions in '...'");
      const std::optional<Splits>& said = call_.positions[at(d)];
      const Splits where = said ? *said : Splits{};
      Bound& bound = dims_[at(d)];
      if (bound.known && bound.cuts != where) {
        trouble("the code takes its part of '" + kernel_.dims[at(d)].name + "' for another one");
      }
      if (!bound.known) bound.cuts = where;
      bound.known = true;
    }
  }

  /// Dims of an operand with "..." opened up: numbers beyond those of the kernel.
  const std::vector<int>& opened(const std::vector<int>& dims) const {
    return has_any(dims) ? any_opened_ : dims;
  }
  const Splits& cuts_of(int d) const {
    return at(d) < dims_.size() ? dims_[at(d)].cuts : any_cuts_[at(d) - dims_.size()];
  }
  const std::string& name_of(int d) const {
    return kernel_.dims[at(d) < dims_.size() ? at(d) : at(any_)].name;
  }
  int logical_of(int d) const {
    return at(d) < dims_.size() ? dims_[at(d)].logical : any_dims_[at(d) - dims_.size()];
  }

  Tensor shaped(const std::vector<int>& result) const {
    Tensor out;
    out.dims.reserve(result.size());
    out.cuts.reserve(result.size());
    for (int d : result) {
      out.dims.push_back(logical_of(d));
      out.cuts.push_back(cuts_of(d));
    }
    return out;
  }

  Tensor linear(const Statement& s) {
    const std::vector<int>& result = opened(s.result.dims);
    Tensor sum = shaped(result);
    for (const Product& p : s.products) {
      Tensor summand = product(p, s, result);
      if (s.products.size() == 1) {
        sum.items = std::move(summand.items);
        sum.scales = std::move(summand.scales);
        break;
      }
      const bool mixed = !sum.items.empty() && !summand.items.empty() &&
                         (has_open_maximum(sum) || has_open_maximum(summand));
      if (mixed) trouble("maxima that are not complete are added");
      add(nodes_, sum, summand);
    }
    settle(sum, regions_);
    return sum;
  }

  ResultDim bound(int d) const { return {.logical = logical_of(d), .cuts = cuts_of(d)}; }

  bool hides(const ResultDim& queries, const ResultDim& keys) const {
    return call_.hides && trouble_.empty() && call_.hides(queries, keys);
  }

  /// Whether what a causal function makes is zero behind its mask.
  bool is_hidden(const Statement& s) const {
    if (s.is_linear() || causal_.empty() || !causal_[at(s.result.tensor)]) return false;
    const auto [query, key] = *causal_[at(s.result.tensor)];
    return hides(bound(s.result.dims[query]), bound(s.result.dims[key]));
  }

  /// Zero times what may be no number is no zero.
  void require_numbers(const Product& p) {
    const auto divides = [&](NodeId node) {
      return nodes_.may_divide_by_zero(node, call_.foreign_from);
    };
    const auto is_number = [&](const Operand& o) {
      const Tensor& value = *values_[at(o.tensor)];
      return std::ranges::none_of(value.scales, divides) &&
             std::ranges::none_of(value.items, divides, &Item::node);
    };
    if (call_.foreign_from < 0 || std::ranges::all_of(p.operands, is_number)) return;
    trouble("zero is multiplied by what may be no number");
  }

  /// The parts of a causal sum that are zero on these devices, beside the one in which queries and
  /// keys are the same, which every right sum has once: with that one they count as added.
  std::vector<Share> hidden_beside(const Share& share, const CausalDims& dims,
                                   const std::vector<int>& result, DimNumbers& numbers) const {
    const auto [query, key] = dims;
    const bool sums_keys = !contains(result, key);
    if (sums_keys == !contains(result, query) || cuts_of(query) != cuts_of(key)) return {};
    const Splits& own = cuts_of(query);
    const int number = numbers.of(sums_keys ? key : query);
    const auto sum = std::ranges::find_if(share.open, [&](const OpenSum& o) {
      return o.node == share.of && o.dim == number && o.cuts == own;
    });
    if (sum == share.open.end() || own.empty() || !own.back().open) return {};
    if (own.back().shift < 0 || own.back().joint != 0) return {};
    std::vector<Share> out;
    const std::int64_t n = regions_.degree(own.back().axis);
    for (std::int64_t by = 1; by < n; ++by) {
      Splits moved = own;
      moved.back().shift = (moved.back().shift + by) % n;
      ResultDim queries = bound(query);
      ResultDim keys = bound(key);
      (sums_keys ? keys : queries).cuts = moved;
      if (!hides(queries, keys)) continue;
      Share& other = out.emplace_back(share);
      other.open[static_cast<std::size_t>(sum - share.open.begin())].cuts = std::move(moved);
      std::ranges::sort(other.open);
    }
    return out;
  }

  /// What a product is made of.
  struct Factors {
    std::vector<NodeOperand> list;
    Rational factor;
    std::vector<NodeId> scales = {};
    std::optional<CausalDims> causal = {};
    const Tensor* partial = nullptr;  // the one that is not complete, if there is one
    NodeOperand incomplete = {};      // what it is a part of
    bool sums_rows = false;           // the row of all elements is summed as well
  };

  Tensor product(const Product& p, const Statement& s, const std::vector<int>& result) {
    const auto is_zero = [&](const Operand& o) { return values_[at(o.tensor)]->items.empty(); };
    for (const Operand& o : p.operands) require_part(o);
    const Rational factor = p.factor * call_.factor;
    if (factor == Rational(0) || std::ranges::any_of(p.operands, is_zero)) {
      require_numbers(p);
      return shaped(result);
    }
    Factors factors{.list = {}, .factor = factor, .sums_rows = sums_rows(p, s)};
    const std::vector<const Operand*> rest = take_scales(p, factors);
    const std::vector<int>& first = opened(rest[0]->dims);
    if (rest.size() == 1 && (first == result || is_turn(first, result))) {
      Tensor same = multiple(*values_[at(rest[0]->tensor)], factors, first);
      multiply(same, factors.scales);
      return first == result ? same : turned(nodes_, same, first, result);
    }
    if (call_.hides) factors.causal = causal_dims(p, causal_);
    for (const Operand* o : rest) add_factor(*o, factors);
    return product(factors, result);
  }

  /// Takes inverses of single numbers out of a product, as long as something else is left.
  std::vector<const Operand*> take_scales(const Product& p, Factors& factors) const {
    std::vector<const Operand*> rest;
    for (const Operand& o : p.operands) {
      const Tensor& value = *values_[at(o.tensor)];
      const bool is_all_there_is = &o == &p.operands.back() && rest.empty();
      if (is_all_there_is || !is_scale(nodes_, value)) {
        rest.push_back(&o);
      } else {
        factors.factor = factors.factor * value.items[0].factor;
        factors.scales.push_back(value.items[0].node);
        factors.scales.insert(factors.scales.end(), value.scales.begin(), value.scales.end());
      }
    }
    return rest;
  }

  void add_factor(const Operand& o, Factors& factors) {
    const Tensor& value = *values_[at(o.tensor)];
    factors.scales.insert(factors.scales.end(), value.scales.begin(), value.scales.end());
    factors.list.push_back(
        bare(nodes_, operand_of(factor_node(value, factors.factor), o), factors.scales));
    if (is_complete(value)) return;
    if (factors.partial != nullptr) trouble("two incomplete sums are multiplied");
    factors.partial = &value;
    factors.incomplete = factors.list.back();
  }

  Tensor multiple(const Tensor& value, const Factors& by, const std::vector<int>& result) {
    if ((by.factor != Rational(1) || !by.scales.empty()) && has_open_maximum(value)) {
      trouble("a maximum that is not complete is multiplied");
    }
    Tensor same = scaled(value, by.factor);
    same.dims = shaped(result).dims;
    return same;
  }

  /// What is a factor of all its items goes to the product, so that scales move freely.
  NodeId factor_node(const Tensor& value, Rational& factor) {
    if (!is_complete(value)) {
      if (has_parts_and_whole(value)) trouble("a sum is added to parts of it");
      return nodes_.node_of(value, nodes_.proportions_in_name(value));
    }
    const Rational common = common_factor(value);
    factor = factor * common;
    const NodeId node = node_without(value, common);
    if (call_.maker == NodeMaker::reference) nodes_.note_factor(node);
    return node;
  }

  /// The node of a complete value over its common factor.
  NodeId node_without(const Tensor& value, const Rational& common) {
    if (value.items.size() == 1) return value.items[0].node;
    if (common == Rational(1)) return nodes_.bare_node_of(value);
    return nodes_.bare_node_of(scaled(value, Rational(1) / common));
  }

  bool sums_rows(const Product& p, const Statement& s) const {
    if (flat_.empty() || has_any(s.result.dims)) return false;
    return std::ranges::any_of(p.operands, [&](const Operand& o) { return has_any(o.dims); });
  }

  Tensor product(const Factors& factors, const std::vector<int>& result) {
    Tensor out = shaped(result);
    DimNumbers numbers;
    const auto [node, made] =
        add_turned(nodes_, product_node(factors.list, result, out.dims, numbers), maker());
    Share share{.of = made, .open = {}, .runs = {}, .factor = factors.factor};
    for (const auto& [d, n] : numbers.all()) {
      if (!contains(result, d)) open(made, n, cuts_of(d), share);
    }
    if (factors.sums_rows) open(made, row_summed(), flat_, share);
    if (!is_one_sum_each(share.open)) trouble("one axis divides two sums");
    std::ranges::sort(share.open);
    Item item = nodes_.item_of(node);
    if (factors.partial != nullptr) {
      NodeOperand through = factors.incomplete;
      through.dims = numbers.of(through.dims);
      if (factors.list.size() == 1) through = {};
      const PassedShares passed{*factors.partial, through, share, call_.most_parts};
      trouble(pass_shares(nodes_, regions_, passed, item));
    } else if (share.open.empty() && share.runs.empty()) {
      item.factor = factors.factor;
    } else {
      item.parts = {made};
      if (factors.causal) item.shares = hidden_beside(share, *factors.causal, result, numbers);
      item.shares.push_back(std::move(share));
      sort_shares(item.shares);
    }
    out.items.push_back(std::move(item));
    multiply(out, factors.scales);
    return out;
  }

  /// The number of the row of elements that is summed.
  int row_summed() {
    const int row = rows_.number_of(*row_, piece_, regions_);
    const AxisList& shifting = rows_.at(row).shifting;
    const bool by_itself = std::ranges::any_of(
        flat_, [&](const Split& split) { return split.open && contains(shifting, split.axis); });
    if (by_itself || contains(shifting, regions_.micro_axis())) {
      trouble("a part of a row is summed that lies elsewhere on other devices or micro-batches");
    }
    return row;
  }

  /// Notes a sum over a dim of which the device has a part.
  void open(NodeId node, int number, const Splits& cuts, Share& share) {
    Splits rest;
    for (Split c : cuts) {
      if (c.axis == regions_.micro_axis() && c.open) {
        if (!share.runs.empty()) trouble("micro-batches divide two sums");
        if (c.shift != 0) trouble("a part of another micro-batch is summed");
        share.sum_over({{.first = -1, .last = -1, .factor = Rational(1)}});
        c.open = false;
        c.joint = kSummedMicroBatches;
      }
      rest.push_back(c);
    }
    trim(rest);
    if (!rest.empty()) share.open.push_back({.node = node, .dim = number, .cuts = rest});
  }

  /// The node of an operand. What is a factor of a quotient's goes to `factor`, that of the result.
  NodeId function_operand(const Statement& s, const Tensor& value, bool divides, Rational& factor) {
    if (!is_complete(value)) return incomplete(value);
    if (divides && value.items.empty()) trouble("divides by zero");
    if (!is_quotient(s)) return nodes_.node_of(value);
    const Rational common = common_factor(value);
    if (!is_small(common) || !is_small(factor)) return nodes_.node_of(value);
    factor = divides ? factor / common : factor * common;
    return scaled(nodes_, node_without(value, common), value.scales);
  }

  Tensor function(const Statement& s) {
    const std::vector<int>& result = opened(s.result.dims);
    Tensor out = shaped(result);
    DimNumbers numbers;
    Node node{.kind = Node::Kind::function, .text = s.function, .dims = out.dims};
    Rational factor{1};
    node.operands.reserve(s.operands.size());
    for (const Operand& o : s.operands) {
      require_part(o);
      const bool divides = is_division(s) && node.operands.size() + 1 == s.operands.size();
      const NodeId operand = function_operand(s, *values_[at(o.tensor)], divides, factor);
      NodeOperand own = operand_of(operand, o);
      own.dims = numbers.of(own.dims);
      node.operands.push_back(std::move(own));
    }
    require_whole(s);
    node.result = numbers.of(result);
    node.seen = seen_by(s, numbers);
    node.combine = s.combine;
    if (draws(s.function)) node.draw = call_.key;
    const auto [value, made] = add_turned(nodes_, std::move(node), maker());
    Share share{.of = made, .open = {}, .runs = {}, .factor = factor};
    for (int d : opened(s.reduced)) open(made, numbers.of(d), cuts_of(d), share);
    if (has_any(s.reduced) && !flat_.empty()) open(made, row_summed(), flat_, share);
    if (!is_one_sum_each(share.open)) trouble("one axis divides two sums");
    std::ranges::sort(share.open);
    Item item = nodes_.item_of(value);
    if (share.open.empty() && share.runs.empty()) {
      item.factor = factor;
    } else {
      item.combine = s.combine;
      item.parts = {made};
      item.shares.push_back(std::move(share));
    }
    out.items.push_back(std::move(item));
    return out;
  }

  /// A tensor that is read under names of other dims is the part that these are.
  void require_part(const Operand& o) {
    const Tensor& value = *values_[at(o.tensor)];
    const std::vector<int>& dims = opened(o.dims);
    for (std::size_t d = 0; d < dims.size() && d < value.dims.size(); ++d) {
      const bool same = value.cuts[d] == cuts_of(dims[d]) &&
                        (logical_of(dims[d]) < 0 || regions_.extent_of(value.dims[d]) ==
                                                        regions_.extent_of(logical_of(dims[d])));
      if (!same) return trouble("a tensor is read as another part of '" + name_of(dims[d]) + "'");
    }
  }

  /// A function that sees vectors sees all of them.
  void require_whole(const Statement& s) {
    for (const int d : opened(s.whole)) {
      if (!is_whole(cuts_of(d))) {
        trouble("'" + s.function + "' sees a part of '" + name_of(d) + "' only");
      }
    }
    if (has_any(s.whole) && !flat_.empty()) {
      trouble("'" + s.function + "' sees a part of a row of elements only");
    }
  }

  /// Dims by number in the node, each with the dim that it is.
  std::vector<int> seen_by(const Statement& s, DimNumbers& numbers) const {
    std::vector<int> seen;
    for (const std::vector<int>* dims : {&s.reduced, &s.whole, &s.positions}) {
      if (dims != &s.reduced) seen.push_back(-1);
      for (const int d : opened(*dims)) {
        seen.push_back(numbers.of(d));
        seen.push_back(logical_of(d));
      }
    }
    return seen;
  }

  /// The node of an operand that should be complete: an odd one that remembers what it is a part
  /// of.
  NodeId incomplete(const Tensor& value) {
    Node node{.kind = Node::Kind::odd, .text = "an incomplete sum", .dims = value.dims};
    const NodeId whole = nodes_.node_of(value, nodes_.proportions_in_name(value));
    node.operands.push_back({scaled(nodes_, whole, value.scales), {}});
    node.result = missing_axes(value, regions_.micro_axis());
    node.draw = wrong_parts(value, regions_);
    const std::int64_t all = regions_.degree(regions_.micro_axis());
    if (node.draw.empty()) node.draw = missing_micro_batches(value, all);
    return nodes_.add(node);
  }

  Nodes& nodes_;
  Regions& regions_;
  Rows& rows_;
  const KernelCall& call_;
  const Kernel& kernel_;
  std::vector<Bound> dims_;
  int any_ = -1;
  bool any_known_ = false;
  std::vector<int> any_dims_;
  std::vector<Splits> any_cuts_;
  std::vector<int> any_opened_;  // its dims as operands name them
  Splits flat_;
  const ContentView* row_ = nullptr;  // that "..." stands for, and which of its tensors
  std::size_t piece_ = 0;
  std::int64_t micro_batch_ = -1;
  std::vector<Tensor> made_;
  std::vector<std::optional<CausalPlaces>> causal_;  // by tensor of the kernel
  std::vector<const Tensor*> values_;  // by tensor of the kernel: what went in, or was made
  std::string trouble_;
};

}  // namespace

std::vector<Content> KernelValues::run(const KernelCall& call,
                                       const std::vector<ContentView>& inputs) {
  std::size_t pieces = 1;
  for (const ContentView& c : inputs) pieces = std::max(pieces, c.pieces.size());
  std::vector<Content> out = pieces == 1 ? Run(nodes_, regions_, rows_, call).run(inputs, 0, "")
                                         : run_row(call, inputs, pieces);
  for (Content& content : out) drop_zeros(nodes_, content.pieces);
  return out;
}

/// Tensor by tensor of a row.
std::vector<Content> KernelValues::run_row(const KernelCall& call,
                                           const std::vector<ContentView>& inputs,
                                           std::size_t pieces) {
  const auto made = over_rows(*call.kernel);
  const char* trouble = made ? "" : "what it makes of a row is not made of its tensors one by one";
  if (!are_rows_alike(*call.kernel, inputs)) trouble = "rows that meet are made up differently";
  std::vector<Content> out = Run(nodes_, regions_, rows_, call).run(inputs, 0, trouble);
  for (std::size_t p = 1; p < pieces; ++p) {
    const std::vector<Content> one = Run(nodes_, regions_, rows_, call).run(inputs, p, trouble);
    for (std::size_t o = 0; o < out.size(); ++o) {
      const OverRow how = made ? (*made)[at(call.kernel->inputs) + o] : OverRow::each;
      if (how == OverRow::each) out[o].pieces.push_back(one[o].pieces[0]);
      if (how == OverRow::sum) add(nodes_, out[o].pieces[0], one[o].pieces[0]);
    }
  }
  for (Content& content : out) settle(content.pieces[0], regions_);
  return out;
}

}  // namespace placet
