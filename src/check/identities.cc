#include "check/identities.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "units/at.h"

namespace placet {
namespace {

bool has(const std::vector<int>& list, int value) {
  return std::ranges::find(list, value) != list.end();
}

/// Looks at products under labels: numbers of dims that stand for the same in all of them. Whether
/// a product is what the identity asks for is decided by making that up and looking whether it is
/// the same node.
class Softmax {
 public:
  explicit Softmax(const Nodes& nodes) : nodes_(nodes) {}

  /// Whether the sum of a product over the dim at a place of its result is zero.
  bool is_zero(NodeId product, std::size_t place) {
    NodeOperand whole{product, std::vector<int>(nodes_.at(product).result.size())};
    std::iota(whole.dims.begin(), whole.dims.end(), 0);
    next_ = static_cast<int>(whole.dims.size());
    u_ = static_cast<int>(place);
    std::vector<NodeOperand> over_u = opened(whole);
    std::erase_if(over_u, [&](const NodeOperand& o) { return !has(o.dims, u_); });
    if (over_u.size() != 2) return false;
    return is_centred(over_u[0], over_u[1]) || is_centred(over_u[1], over_u[0]);
  }

 private:
  using Kind = Node::Kind;

  const Node& node(const NodeOperand& value) const { return nodes_.at(value.node); }
  bool is_function(const NodeOperand& value, std::string_view name) const {
    return node(value).kind == Kind::function && node(value).text == name;
  }

  /// The operands of a node under labels; dims that it sums over get new ones.
  std::vector<NodeOperand> opened(const NodeOperand& value) {
    const Node& n = node(value);
    std::map<int, int> labels;
    for (std::size_t i = 0; i < n.result.size(); ++i) labels[n.result[i]] = value.dims[i];
    std::vector<NodeOperand> out = n.operands;
    for (const Item& term : n.terms) out.push_back({term.node, n.result});
    for (NodeOperand& o : out) {
      for (std::size_t d = 0; d < o.dims.size(); ++d) {
        const auto [label, fresh] = labels.try_emplace(o.dims[d], next_);
        if (fresh) ++next_;
        o.dims[d] = label->second;
        logical_[label->second] = nodes_.at(o.node).dims[d];
      }
    }
    return out;
  }

  std::vector<int> logical(const std::vector<int>& labels) const {
    std::vector<int> out(labels.size());
    std::ranges::transform(labels, out.begin(), [&](int l) { return logical_.at(l); });
    return out;
  }

  NodeId product(std::vector<NodeOperand> factors, const std::vector<int>& result) const {
    DimNumbers numbers;
    return nodes_.find(product_node(std::move(factors), result, logical(result), numbers));
  }

  NodeId ratio(const NodeOperand& a, const NodeOperand& b) const {
    DimNumbers numbers;
    Node made{.kind = Kind::function, .text = "ratio", .dims = logical(a.dims)};
    made.operands = {{a.node, numbers.of(a.dims)}, {b.node, numbers.of(b.dims)}};
    made.result = numbers.of(a.dims);
    made.seen = {-1, -1};
    return nodes_.find(made);
  }

  /// Whether the sum over u of `d` w is zero: d is a difference of two that give the same.
  bool is_centred(const NodeOperand& d, const NodeOperand& w) {
    if (node(d).kind != Kind::sum || node(d).terms.size() != 2) return false;
    const Items& both = node(d).terms;
    if (both[0].factor * Rational(-1) != both[1].factor) return false;
    const std::vector<NodeOperand> terms = opened(d);
    return give_the_same(terms[0], terms[1], w) || give_the_same(terms[1], terms[0], w);
  }

  /// Whether `spread` is Σ_e dn v, and `even` is Σ_e do o / l.
  bool give_the_same(const NodeOperand& spread, const NodeOperand& even, const NodeOperand& w) {
    if (node(spread).kind != Kind::product || node(even).kind != Kind::product) return false;
    std::vector<NodeOperand> values = opened(spread);
    const auto is_over_u = [&](const NodeOperand& o) { return has(o.dims, u_); };
    const auto middle = std::ranges::stable_partition(values, is_over_u).begin();
    if (values.end() - middle != 1) return false;
    const NodeOperand dn = *middle;
    values.erase(middle, values.end());
    values.push_back(w);
    const std::vector<NodeOperand> means = opened(even);
    if (means.size() != 1 || is_over_u(means[0])) return false;
    return sums_alike(spread, dn, w, means[0]) && divides_by_sum(dn, values, w, means[0]);
  }

  /// Whether w is summed over u alone in Σ_u w v, and dn over the same dims in both terms.
  bool sums_alike(const NodeOperand& spread, const NodeOperand& dn, const NodeOperand& w,
                  const NodeOperand& mean) const {
    const auto stays = [&](int label) { return label == u_ || has(dn.dims, label); };
    const auto is_alike = [&](int label) {
      return has(spread.dims, label) == has(mean.dims, label);
    };
    return std::ranges::all_of(w.dims, stays) && std::ranges::all_of(dn.dims, is_alike);
  }

  /// Whether dn is do / l, l is Σ_u w, and `mean` is Σ_e do o / l for o = Σ_u w v / l. `values`: w
  /// and v.
  bool divides_by_sum(const NodeOperand& dn, const std::vector<NodeOperand>& values,
                      const NodeOperand& w, const NodeOperand& mean) {
    if (node(dn).kind != Kind::product || node(dn).operands.size() != 2) return false;
    std::vector<NodeOperand> factors = opened(dn);
    if (is_function(factors[0], "inv")) std::swap(factors[0], factors[1]);
    if (!is_function(factors[1], "inv")) return false;
    const NodeOperand l = opened(factors[1])[0];
    const auto stays = [&](int label) { return label == u_ || has(l.dims, label); };
    if (!std::ranges::all_of(w.dims, stays) || product({w}, l.dims) != l.node) return false;
    const NodeOperand n{product(values, dn.dims), dn.dims};
    if (n.node < 0) return false;
    const NodeOperand o{ratio(n, l), dn.dims};
    if (o.node < 0) return false;
    factors.push_back(o);
    return product(factors, mean.dims) == mean.node;
  }

  const Nodes& nodes_;
  int u_ = 0;
  int next_ = 0;                // label
  std::map<int, int> logical_;  // dims by label
};

/// Whether a share is over parts of other sums only: of those of the factor, and of the product's
/// own but the one over `dim`. A part of a row of elements is one of all dims at once. A sum that
/// micro-batches divide is named as long as not all of them are in it.
bool is_whole_over(const Share& share, NodeId product, NodeId factor, int dim) {
  return std::ranges::all_of(share.open, [&](const OpenSum& o) {
    return o.node == factor || (o.node == product && o.dim >= 0 && o.dim != dim);
  });
}

/// Whether what an item has is zero: of its sums only such are not whole over which nothing
/// cancels.
bool is_zero(const Nodes& nodes, const Item& item) {
  const std::vector<int>& dims = nodes.zero_dims(item.node);
  if (item.complete() || dims.empty()) return !dims.empty();
  const NodeId product = nodes.unscaled(item.node);
  const NodeId factor = nodes.at(product).operands[0].node;
  // Parts of a sum that the factor is linear in do not cancel each by itself.
  if (item.parts.size() != 1) return false;
  const NodeId part = nodes.unscaled(item.parts.front());
  if (part != product && part != factor) return false;
  return std::ranges::any_of(dims, [&](int dim) {
    return std::ranges::all_of(
        item.shares, [&](const Share& s) { return is_whole_over(s, product, factor, dim); });
  });
}

}  // namespace

void note_zeros(Nodes& nodes, NodeId product) {
  const Node& sum = nodes.at(product);
  if (sum.operands.size() != 1) return;
  const NodeOperand factor = sum.operands[0];
  if (nodes.at(factor.node).kind != Node::Kind::product) return;
  for (std::size_t d = 0; d < factor.dims.size(); ++d) {
    if (has(sum.result, factor.dims[d])) continue;
    if (Softmax(nodes).is_zero(factor.node, d)) nodes.note_zero(product, factor.dims[d]);
  }
}

void drop_zeros(const Nodes& nodes, std::vector<Tensor>& tensors) {
  if (!nodes.has_zeros()) return;
  const auto is_nothing = [&](const Item& item) { return is_zero(nodes, item); };
  for (Tensor& t : tensors) {
    if (!t.items.any_vanishes() || std::ranges::none_of(t.items, is_nothing)) continue;
    t.items.edit_all([&](std::vector<Item>& items) { std::erase_if(items, is_nothing); });
    if (t.items.empty()) t.scales.clear();
  }
}

}  // namespace placet
