#include "derive/unit_work.h"

#include <algorithm>
#include <array>

#include "derive/collective_time.h"
#include "derive/unit_traffic.h"
#include "model/gradients.h"
#include "units/at.h"

namespace placet {
namespace {

// Flash kernels work on squares of so many queries and keys; a window's edges cut some of them.
constexpr double kAttentionBlock = 128;

MatmulFormat format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp16:
      return MatmulFormat::fp16;
    case Dtype::fp8:
    case Dtype::int8:
    case Dtype::uint8:
      return MatmulFormat::fp8;
    case Dtype::fp4:
    case Dtype::nf4:
    case Dtype::int4:
      return MatmulFormat::fp4;
    case Dtype::fp32:
    case Dtype::int32:
    case Dtype::int64:
    case Dtype::fp64:
      return MatmulFormat::fp32;
    case Dtype::bf16:
      return MatmulFormat::bf16;
  }
  return MatmulFormat::bf16;
}

/// Writes the kernels of a unit, operator by operator.
class WorkWriter {
 public:
  WorkWriter(const Layout& layout, int unit, bool recomputed)
      : unit_(layout, unit, recomputed),
        layout_(layout),
        job_(*layout.job),
        timing_(job_.profile.timing),
        kind_(unit_.kind) {}

  UnitWork write() {
    const std::size_t routing = routing_operator();
    for (std::size_t o = 0; o < kind_.operators.size(); ++o) {
      forward_.clear();
      const std::size_t begin = out_.backward.size();
      write_forward(o);
      for (KernelWork& kernel : forward_) kernel.before_routing = o < routing;
      out_.forward.insert(out_.forward.end(), forward_.begin(), forward_.end());
      if (unit_.ends_again(o)) {
        out_.again.insert(out_.again.end(), forward_.begin(), forward_.end());
      }
      write_backward(o);
      for (std::size_t k = begin; k < out_.backward.size(); ++k) {
        out_.backward[k].before_routing = o < routing;
      }
    }
    return std::move(out_);
  }

 private:
  const Operator& op_at(std::size_t o) const { return kind_.operators[o]; }

  /// The operator that sends tokens to their experts; the first one where there is none.
  std::size_t routing_operator() const {
    const auto found = std::ranges::find(kind_.operators, OpKind::dispatch, &Operator::kind);
    return found == kind_.operators.end() ? 0 : at(found - kind_.operators.begin());
  }

  // --- sizes

  double bytes_each(int v) const {
    switch (kind_.values[at(v)].type) {
      case ValueType::compute:
        return static_cast<double>(bits_of(job_.precision.compute)) / 8;
      case ValueType::fp32:
        return 4;
      case ValueType::mask:
        return 1;
      case ValueType::int64:
        return 8;
    }
    return 0;
  }

  double bytes_of_value(int v) const {
    return bytes_each(v) * static_cast<double>(unit_.local.values[at(v)]);
  }

  double gradient_bytes(int v) const {
    return unit_.prepared.gradients.values[at(v)] ? bytes_of_value(v) : 0;
  }

  template <class Each>
  double sum(const std::vector<int>& values, Each each) const {
    double total = 0;
    for (int v : values) total += each(v);
    return total;
  }

  double inputs(const Operator& op) const {
    return sum(op.inputs, [&](int v) { return bytes_of_value(v); });
  }
  double outputs(const Operator& op) const {
    return sum(op.outputs, [&](int v) { return bytes_of_value(v); });
  }
  double input_gradients(const Operator& op) const {
    return sum(op.inputs, [&](int v) { return gradient_bytes(v); });
  }

  /// Values inside the kernel that it leaves for backward are written once and read once.
  double kept_inside(const Operator& op) const {
    return sum(op.internals,
               [&](int v) { return unit_.plan.is_kept[at(v)] ? bytes_of_value(v) : 0.0; });
  }

  /// Tokens that an operator works on, samples of the micro-batch included.
  std::int64_t tokens_of(const Operator& op) const {
    const bool whole = op.region == Region::parallel;
    return layout_.micro_batch * (whole ? layout_.tokens : layout_.residual_tokens);
  }

  // --- products

  /// The product of an operator with its matrix: n the outputs' length, k the inputs'.
  ProductShape product_of(const Operator& op) const {
    const int p = op.parameters.front();
    const Parameter& declared = kind_.parameters[at(p)];
    const LocalParameter& local = unit_.local.parameters[at(p)];
    const std::int64_t rows = std::max<std::int64_t>(1, local.matrix_rows);
    const std::int64_t columns = std::max<std::int64_t>(1, local.matrix_columns);
    const std::size_t first = declared.dims.size() >= 2 ? declared.dims.size() - 2 : 0;
    const Index out = kind_.values[at(op.outputs.front())].dims.back().index;
    const Index in = kind_.values[at(op.inputs.front())].dims.back().index;
    const bool rows_are_out = segmented_dim(declared) == static_cast<int>(first) ||
                              declared.dims[first].index == out || declared.dims.back().index == in;
    ProductShape shape{.n = rows_are_out ? rows : columns, .k = rows_are_out ? columns : rows};
    shape.batch = std::max<std::int64_t>(1, local.elements / (rows * columns));
    shape.m = tokens_of(op);
    if (op.kind == OpKind::grouped_linear) {
      const std::int64_t routed = unit_.local.values[at(op.inputs.front())] / shape.k;
      shape.m = std::max<std::int64_t>(1, routed / shape.batch);
    }
    return shape;
  }

  MatmulFormat format(const Operator& op) const {
    const bool linear = op.kind == OpKind::linear || op.kind == OpKind::grouped_linear;
    const bool narrow = linear && op.module != Module::head && op.module != Module::embedding;
    return format_of(narrow && job_.precision.products ? *job_.precision.products
                                                       : job_.precision.compute);
  }

  bool is_narrow(const Operator& op) const {
    return format(op) != format_of(job_.precision.compute);
  }

  KernelWork product(const Operator& op, const ProductShape& shape) const {
    const double wide = static_cast<double>(bits_of(job_.precision.compute)) / 8;
    const auto area = [](std::int64_t a, std::int64_t b) {
      return static_cast<double>(a) * static_cast<double>(b);
    };
    const double elements =
        area(shape.m, shape.k) + area(shape.k, shape.n) + area(shape.m, shape.n);
    const std::int64_t launches =
        launches_of(op, shape.batch) * (is_narrow(op) ? 1 + timing_.narrow_launches : 1);
    return {.kind = KernelWork::Kind::product,
            .what = op.name,
            .shape = shape,
            .format = format(op),
            .bytes = wide * elements * static_cast<double>(shape.batch),
            .flops = flops_of(shape),
            .launches = once_for_all(op) ? 1 : launches,
            .inner_launches = once_for_all(op) ? launches : 0,
            .aligned = is_aligned(op)};
  }

  /// Whether the host asks once for the products of all experts, and a library's loop launches
  /// them.
  bool once_for_all(const Operator& op) const {
    return op.kind == OpKind::grouped_linear && timing_.host_per_expert_launch.has_value();
  }

  /// Of a product with so many experts' matrices: one each, unless the engine has one for all.
  std::int64_t launches_of(const Operator& op, std::int64_t experts) const {
    if (op.kind != OpKind::grouped_linear) return 1;
    return std::max<std::int64_t>(1, experts * timing_.launches_per_expert);
  }

  /// Whether rows of the weight and of the output have an even length: elements of half precision
  /// are loaded in pairs at least.
  bool is_aligned(const Operator& op) const {
    if (op.parameters.empty()) return scores_of(op).head_size % 2 == 0;
    const ProductShape shape = product_of(op);
    return shape.n % 2 == 0 && shape.k % 2 == 0;
  }

  /// Products in fewer bits than their operands have: the kernel before writes m rows of `width`
  /// for this product and, the other way round, for that of the weight's gradient.
  void write_cast(const Operator& op, const ProductShape& s, std::int64_t width,
                  std::vector<KernelWork>& out) const {
    if (!is_narrow(op)) return;
    const double elements =
        static_cast<double>(s.batch) * static_cast<double>(s.m) * static_cast<double>(width);
    const double written = static_cast<double>(bits_of(*job_.precision.products)) / 8;
    const double read = op.kind == OpKind::grouped_linear ? timing_.cast_bytes : 0.0;
    const double moved = elements * (2 * written + read);
    const std::int64_t launches = launches_of(op, s.batch);
    out.push_back(stream(op, moved, once_for_all(op) ? 1 : launches));
    if (once_for_all(op)) out.back().inner_launches = launches;
  }

  bool has_product(const Operator& op) const {
    return (op.kind == OpKind::linear || op.kind == OpKind::grouped_linear) &&
           !op.parameters.empty() && !op.outputs.empty();
  }

  // --- fused kernels

  /// Whether operator o runs in one kernel with the one before it.
  bool joins_before(std::size_t o) const {
    return o > 0 && follows(o) &&
           std::ranges::any_of(timing_.fused, [&](const std::vector<OpKind>& chain) {
             return holds(chain, op_at(o - 1).kind, op_at(o).kind);
           });
  }

  /// Whether the two kinds stand side by side in a chain.
  static bool holds(const std::vector<OpKind>& chain, OpKind first, OpKind second) {
    const std::array<OpKind, 2> pair = {first, second};
    return !std::ranges::search(chain, pair).empty();
  }

  bool follows(std::size_t o) const { return shared_value(o) >= 0; }

  /// The value that operator o takes from the one before it; -1: none.
  int shared_value(std::size_t o) const {
    for (int v : op_at(o).inputs) {
      if (std::ranges::find(op_at(o - 1).outputs, v) != op_at(o - 1).outputs.end()) return v;
    }
    return -1;
  }

  /// Bytes that stay inside where o joins the operator before: written and read by neither.
  double inside(std::size_t o) const {
    double bytes = 0;
    for (int v : op_at(o).inputs) {
      const auto& made = op_at(o - 1).outputs;
      if (std::ranges::find(made, v) != made.end()) bytes += 2 * bytes_of_value(v);
    }
    return bytes;
  }

  KernelWork stream(const Operator& op, double bytes, std::int64_t launches) const {
    return {.what = op.name, .bytes = std::max(0.0, bytes), .launches = launches};
  }

  // --- operators in several kernels

  const OperatorSteps& steps_of(const Operator& op) const {
    return timing_.steps[static_cast<std::size_t>(op.kind)];
  }

  /// A bias belongs to its product, but for the last one of experts, which is scaled by the token's
  /// weight on the way to their sum.
  bool runs_in_steps(std::size_t o) const {
    if (!steps_of(op_at(o)).given()) return false;
    if (op_at(o).kind != OpKind::bias) return true;
    return o + 1 < kind_.operators.size() && op_at(o + 1).kind == OpKind::combine;
  }

  KernelWork in_steps(const Operator& op, bool backward) const {
    const OperatorSteps& steps = steps_of(op);
    const double elements =
        sum(op.outputs, [&](int v) { return static_cast<double>(unit_.local.values[at(v)]); });
    return stream(op, elements * (backward ? steps.backward_bytes : steps.forward_bytes),
                  backward ? steps.backward_launches : steps.forward_launches);
  }

  // --- attention

  struct Scores {
    std::int64_t heads = 0;
    std::int64_t head_size = 1;
    double pairs = 0;  // of a query and a key, of all heads and samples, causality not counted
    double seen = 1;   // part of the pairs that a causal, windowed kernel computes
    std::int64_t queries = 0;
    std::int64_t keys = 0;
    std::int64_t length = 0;  // keys that a query sees at most
  };

  Scores scores_of(const Operator& op) const {
    Scores s;
    const Dim& heads = kind_.values[at(op.inputs.front())].dims.back();
    s.head_size = std::max<std::int64_t>(1, heads.size / std::max<std::int64_t>(1, heads.parts));
    s.queries = layout_.tokens;
    s.keys = job_.batch.sequence;
    const std::int64_t per_head = layout_.micro_batch * s.queries * s.head_size;
    s.heads = std::max<std::int64_t>(1, unit_.local.values[at(op.inputs.front())] / per_head);
    s.pairs = static_cast<double>(layout_.micro_batch * s.heads) * static_cast<double>(s.queries) *
              static_cast<double>(s.keys);
    s.seen = 0.5;
    s.length = s.keys;
    if (op.window > 0 && op.window < s.keys) {
      s.length = op.window;
      const double keys = static_cast<double>(s.keys);
      const double part = std::min(1.0, (static_cast<double>(op.window) + kAttentionBlock) / keys);
      s.seen = part - part * part / 2;
    }
    return s;
  }

  KernelWork fused_attention(const Operator& op, bool backward) const {
    const Scores s = scores_of(op);
    const double forward = 4 * s.pairs * s.seen * static_cast<double>(s.head_size);
    return {.kind = KernelWork::Kind::attention,
            .what = op.name,
            .format = format_of(job_.precision.compute),
            .bytes = (inputs(op) + outputs(op)) * (backward ? 2 : 1),
            .flops = backward ? 2.5 * forward : forward,
            .head_size = s.head_size,
            .length = s.length,
            .backward = backward,
            .launches = backward ? 2 : 1};
  }

  void plain_attention(const Operator& op, bool backward, std::vector<KernelWork>& out) const {
    const Scores s = scores_of(op);
    const std::int64_t batch = layout_.micro_batch * s.heads;
    const ProductShape scores{.batch = batch, .m = s.queries, .n = s.keys, .k = s.head_size};
    const ProductShape context{.batch = batch, .m = s.queries, .n = s.head_size, .k = s.keys};
    const int rounds = backward ? 2 : 1;
    for (int i = 0; i < rounds; ++i) {
      out.push_back(product(op, scores));
      out.push_back(product(op, context));
    }
    const double softmax = backward ? timing_.score_bytes_backward : timing_.score_bytes_forward;
    const bool drops = op.internals.size() > static_cast<std::size_t>(internal::kAttentionMask);
    const double each = softmax + (drops ? timing_.dropped_score_bytes : 0.0);
    out.push_back(stream(op, each * s.pairs, drops ? 3 : 2));
  }

  /// Keys and values repeated for all heads where the kernel does not share them: written forward;
  /// backward their gradients are read and added up.
  void write_expanded(const Operator& op, std::vector<KernelWork>& out) const {
    for (const int slot : {internal::kKeysExpanded, internal::kValuesExpanded}) {
      if (at(slot) >= op.internals.size()) continue;
      const int v = op.internals[at(slot)];
      if (unit_.plan.is_kept[at(v)]) out.push_back(stream(op, bytes_of_value(v), 1));
    }
  }

  void write_attention(const Operator& op, bool backward, std::vector<KernelWork>& out) const {
    if (timing_.attention_kernel.empty()) {
      plain_attention(op, backward, out);
    } else {
      write_expanded(op, out);
      out.push_back(fused_attention(op, backward));
    }
  }

  // --- operators

  double logits_of(const Operator& op) const {
    return static_cast<double>(unit_.local.values[at(op.inputs.front())]);
  }

  void write_forward(std::size_t o) {
    const Operator& op = op_at(o);
    if (has_product(op)) {
      write_cast(op, product_of(op), product_of(op).k, forward_);
      return forward_.push_back(product(op, product_of(op)));
    }
    if (op.kind == OpKind::attention) return write_attention(op, false, forward_);
    if (op.kind == OpKind::loss) {
      return forward_.push_back(stream(op, logits_of(op) * timing_.logit_bytes / 2, 4));
    }
    if (runs_in_steps(o)) return forward_.push_back(in_steps(op, false));
    const double taken = op.kind == OpKind::embedding ? outputs(op) : inputs(op);
    const double moved = sorts_here(op) ? sorted_here(op) : taken + outputs(op) + sorted_again(op);
    const double kept = 2 * kept_inside(op);
    if (joins_before(o)) {
      forward_.push_back(stream(op, moved + kept - inside(o), 0));
    } else {
      forward_.push_back(stream(op, moved + kept, 1));
    }
    forward_.back().routes = op.kind == OpKind::dispatch;
  }

  /// Tokens in order of their experts, copies of all choices.
  double routed_bytes(const Operator& op) const {
    return bytes_of_value(op.kind == OpKind::dispatch ? op.outputs.front() : op.inputs.front());
  }

  bool is_exchanged(const Operator& op) const {
    const bool routes = op.kind == OpKind::dispatch || op.kind == OpKind::combine;
    return routes && unit_.routed_axes().exchanged != 0;
  }

  /// Tokens that come from other devices are sorted by expert once more where they arrive, and back
  /// before they leave: read and written.
  double sorted_again(const Operator& op) const {
    return is_exchanged(op) ? 2 * routed_bytes(op) : 0;
  }

  /// Where the exchange itself takes tokens from their place and adds up what comes back, what
  /// remains is what arrived, each token once, and its copies in order of experts, one read and
  /// the other written.
  bool sorts_here(const Operator& op) const { return timing_.sorts_on_arrival && is_exchanged(op); }

  double sorted_here(const Operator& op) const {
    const std::int64_t devices = degree_of(job_.placement, unit_.routed_axes().exchanged);
    const double arrive = timing_.exchanges_once_per_domain
                              ? first_copies(job_.model.figures.experts_per_token, devices)
                              : 1;
    return routed_bytes(op) * (1 + arrive);
  }

  void write_backward(std::size_t o) {
    const Operator& op = op_at(o);
    if (!unit_.prepared.operators[o].backward) return;
    write_added(o);
    if (has_product(op)) return write_product_backward(op);
    if (op.kind == OpKind::attention) return write_attention(op, true, out_.backward);
    if (op.kind == OpKind::loss) {
      return out_.backward.push_back(stream(op, logits_of(op) * timing_.logit_bytes / 2, 3));
    }
    if (runs_in_steps(o)) return out_.backward.push_back(in_steps(op, true));
    if (op.kind == OpKind::residual_add) return;  // its gradient is that of both inputs
    write_stream_backward(o);
  }

  void write_product_backward(const Operator& op) {
    const ProductShape s = product_of(op);
    write_cast(op, s, s.n, out_.backward);
    const bool hands_on = std::ranges::any_of(
        op.inputs, [&](int v) { return unit_.prepared.gradients.values[at(v)]; });
    if (hands_on) {
      out_.backward.push_back(product(op, {.batch = s.batch, .m = s.m, .n = s.k, .k = s.n}));
    }
    if (!trains(kind_, op)) return;
    out_.backward.push_back(product(op, {.batch = s.batch, .m = s.n, .n = s.k, .k = s.m}));
    out_.backward.back().for_weights = true;
    write_accumulation(op);
  }

  double gradient_elements(const Operator& op) const {
    double elements = 0;
    for (int p : op.parameters) {
      elements += static_cast<double>(unit_.local.parameters[at(p)].elements);
    }
    return elements;
  }

  void write_for_weights(const Operator& op, double bytes, std::int64_t launches) {
    out_.backward.push_back(stream(op, bytes, launches));
    out_.backward.back().for_weights = true;
  }

  /// A weight's gradient is added to what earlier micro-batches left, in its own format.
  void write_accumulation(const Operator& op) {
    const double elements = gradient_elements(op);
    if (timing_.gradient_bytes > 0) write_for_weights(op, elements * timing_.gradient_bytes, 1);
    if (layout_.micro_batches == 1 && !job_.profile.fuses_weight_gradient) return;
    const double each = static_cast<double>(bits_of(job_.precision.gradients)) / 8;
    const double made = static_cast<double>(bits_of(job_.precision.compute)) / 8;
    const bool fused = job_.profile.fuses_weight_gradient;
    const double moved = fused ? 2 * each - made : 2 * each + made;
    write_for_weights(op, elements * moved, fused ? 0 : 1);
  }

  void write_stream_backward(std::size_t o) {
    const Operator& op = op_at(o);
    const bool sums_only =
        op.kind == OpKind::bias || op.kind == OpKind::position || op.kind == OpKind::embedding;
    const bool linear = op.kind == OpKind::rotary || op.kind == OpKind::dropout ||
                        op.kind == OpKind::dispatch ||
                        (op.kind == OpKind::combine && timing_.weighs_in_activation);
    double moved = sum(op.outputs, [&](int v) { return gradient_bytes(v); });
    if (!sums_only) moved += input_gradients(op) * (linear ? 1 : 2);
    moved = sorts_here(op) ? sorted_here(op) : moved + sorted_again(op);
    moved += kept_inside(op);
    const bool joined = joins_before(o) && op.kind != OpKind::bias;
    if (joined) moved -= inside(o);
    const std::int64_t launches = joined ? 0 : 1;
    out_.backward.push_back(stream(op, moved, op.kind == OpKind::norm ? 2 : launches));
  }

  /// Gradients of values that several operators take are added up.
  void write_added(std::size_t o) {
    for (int v : unit_.prepared.operators[o].adjoints_added) {
      out_.backward.push_back(stream(op_at(o), 3 * gradient_bytes(v), 1));
    }
  }

  UnitTraffic unit_;
  const Layout& layout_;
  const Job& job_;
  const EngineTiming& timing_;
  const UnitKind& kind_;
  std::vector<KernelWork> forward_;  // of the operator in hand
  UnitWork out_;
};

}  // namespace

double flops_of(const ProductShape& shape) {
  return 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.m) *
         static_cast<double>(shape.n) * static_cast<double>(shape.k);
}

UnitWork unit_work(const Layout& layout, int unit, bool recomputed) {
  return WorkWriter(layout, unit, recomputed).write();
}

}  // namespace placet
