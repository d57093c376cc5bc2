#include "derive/unit_work.h"

#include <algorithm>
#include <array>

#include "derive/collective_time.h"
#include "derive/state_bytes.h"
#include "derive/unit_kernels.h"
#include "model/gradients.h"
#include "units/at.h"

namespace placet {
namespace {

/// Writes the kernels of a unit, operator by operator.
class WorkWriter {
 public:
  WorkWriter(const Layout& layout, int unit, bool recomputed)
      : kernels_(layout, unit, recomputed),
        unit_(kernels_.unit),
        layout_(layout),
        job_(kernels_.job),
        timing_(kernels_.timing),
        kind_(kernels_.kind) {}

  UnitWork write() {
    const std::size_t routing = routing_operator();
    write_gathered();
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
      if (std::ranges::find(made, v) != made.end()) bytes += 2 * kernels_.bytes_of_value(v);
    }
    return bytes;
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
        sum_over(op.outputs, [&](int v) { return static_cast<double>(unit_.local.values[at(v)]); });
    return kernels_.stream(op, elements * (backward ? steps.backward_bytes : steps.forward_bytes),
                           backward ? steps.backward_launches : steps.forward_launches);
  }

  // --- operators

  double logits_of(const Operator& op) const {
    return static_cast<double>(unit_.local.values[at(op.inputs.front())]);
  }

  void write_forward(std::size_t o) {
    const Operator& op = op_at(o);
    if (kernels_.has_product(op)) {
      kernels_.write_dequantised(op, forward_);
      kernels_.write_cast(op, kernels_.product_of(op), false, forward_);
      return forward_.push_back(kernels_.product(op, kernels_.product_of(op)));
    }
    if (op.kind == OpKind::attention) return kernels_.write_attention(op, false, forward_);
    if (kernels_.in_chunks(op)) return forward_.push_back(kernels_.scan(op, false));
    if (op.kind == OpKind::loss) {
      return forward_.push_back(kernels_.stream(op, logits_of(op) * timing_.logit_bytes / 2, 4));
    }
    if (runs_in_steps(o)) return forward_.push_back(in_steps(op, false));
    const double taken = op.kind == OpKind::embedding ? kernels_.outputs(op) : kernels_.inputs(op);
    const double moved =
        sorts_here(op) ? sorted_here(op) : taken + kernels_.outputs(op) + sorted_again(op);
    const double kept = 2 * kernels_.kept_inside(op);
    if (joins_before(o)) {
      forward_.push_back(kernels_.stream(op, moved + kept - inside(o), 0));
    } else {
      forward_.push_back(kernels_.stream(op, moved + kept, 1));
    }
    forward_.back().routes = op.kind == OpKind::dispatch;
  }

  /// Tokens in order of their experts, copies of all choices.
  double routed_bytes(const Operator& op) const {
    return kernels_.bytes_of_value(op.kind == OpKind::dispatch ? op.outputs.front()
                                                               : op.inputs.front());
  }

  bool is_exchanged(const Operator& op) const {
    const bool routes = op.kind == OpKind::dispatch || op.kind == OpKind::combine;
    return routes && routed_axes(unit_).exchanged != 0;
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
    const std::int64_t devices = degree_of(job_.placement, routed_axes(unit_).exchanged);
    const double arrive = timing_.exchanges_once_per_domain
                              ? first_copies(job_.model.figures.experts_per_token, devices)
                              : 1;
    return routed_bytes(op) * (1 + arrive);
  }

  /// Parameters that rest in parts are copied out of what was gathered, forward and, unless they
  /// stay until then, backward.
  void write_gathered() {
    if (timing_.gathered_bytes == 0) return;
    double forward = 0;
    double backward = 0;
    for (const LocalParameter& parameter : unit_.local.parameters) {
      const auto elements = static_cast<double>(parameter.elements);
      if ((parameter.rests_in_part & ~parameter.kept_step) != 0) forward += elements;
      if ((parameter.rests_in_part & ~parameter.kept) != 0) backward += elements;
    }
    add_copies(forward, out_.forward);
    add_copies(backward, out_.backward);
  }

  void add_copies(double elements, std::vector<KernelWork>& out) const {
    if (elements == 0) return;
    out.push_back({.what = "gathered parameters", .bytes = elements * timing_.gathered_bytes});
  }

  void write_backward(std::size_t o) {
    const Operator& op = op_at(o);
    if (!unit_.prepared.operators[o].backward) return;
    write_added(o);
    if (kernels_.has_product(op)) return write_product_backward(op);
    if (op.kind == OpKind::attention) return kernels_.write_attention(op, true, out_.backward);
    if (kernels_.in_chunks(op)) return out_.backward.push_back(kernels_.scan(op, true));
    if (op.kind == OpKind::loss) {
      return out_.backward.push_back(
          kernels_.stream(op, logits_of(op) * timing_.logit_bytes / 2, 3));
    }
    if (runs_in_steps(o)) return out_.backward.push_back(in_steps(op, true));
    if (op.kind == OpKind::residual_add) return;  // its gradient is that of both inputs
    write_stream_backward(o);
  }

  void write_product_backward(const Operator& op) {
    const ProductShape s = kernels_.product_of(op);
    kernels_.write_cast(op, s, true, out_.backward);
    const bool hands_on = std::ranges::any_of(
        op.inputs, [&](int v) { return unit_.prepared.gradients.values[at(v)]; });
    if (hands_on) {
      kernels_.write_dequantised(op, out_.backward);
      out_.backward.push_back(
          kernels_.product(op, {.batch = s.batch, .m = s.m, .n = s.k, .k = s.n}));
    }
    if (!trains(kind_, op)) return;
    out_.backward.push_back(kernels_.product(op, {.batch = s.batch, .m = s.n, .n = s.k, .k = s.m}));
    out_.backward.back().for_weights = true;
    write_accumulation(op);
  }

  /// Bytes of the sums that an operator's weight gradients are added to.
  double sum_bytes(const Operator& op) const {
    double bytes = 0;
    for (int p : op.parameters) {
      const LocalParameter& own = unit_.local.parameters[at(p)];
      bytes += static_cast<double>(own.elements) *
               static_cast<double>(bits_of(gradient_dtype(job_, own))) / 8;
    }
    return bytes;
  }

  double gradient_elements(const Operator& op) const {
    double elements = 0;
    for (int p : op.parameters) {
      elements += static_cast<double>(unit_.local.parameters[at(p)].elements);
    }
    return elements;
  }

  void write_for_weights(const Operator& op, double bytes, std::int64_t launches) {
    out_.backward.push_back(kernels_.stream(op, bytes, launches));
    out_.backward.back().for_weights = true;
  }

  /// A weight's gradient is added to what earlier micro-batches left, in its own format.
  void write_accumulation(const Operator& op) {
    const double elements = gradient_elements(op);
    const double sums = sum_bytes(op);
    const double made = elements * static_cast<double>(bits_of(job_.precision.compute)) / 8;
    const bool fused = job_.profile.fuses_weight_gradient;
    // The product itself reads the sum and writes it, in place of its own result.
    if (fused) out_.backward.back().added_bytes = 2 * sums - made;
    if (timing_.gradient_bytes > 0) write_for_weights(op, elements * timing_.gradient_bytes, 1);
    if (!fused && layout_.micro_batches > 1) {
      write_for_weights(op, 2 * sums + made, 1);
    }
  }

  void write_stream_backward(std::size_t o) {
    const Operator& op = op_at(o);
    const bool sums_only =
        op.kind == OpKind::bias || op.kind == OpKind::position || op.kind == OpKind::embedding;
    const bool linear = op.kind == OpKind::rotary || op.kind == OpKind::dropout ||
                        op.kind == OpKind::dispatch ||
                        (op.kind == OpKind::combine && timing_.weighs_in_activation);
    double moved = sum_over(op.outputs, [&](int v) { return kernels_.gradient_bytes(v); });
    if (!sums_only) moved += kernels_.input_gradients(op) * (linear ? 1 : 2);
    moved = sorts_here(op) ? sorted_here(op) : moved + sorted_again(op);
    moved += kernels_.kept_inside(op);
    const bool joined = joins_before(o) && op.kind != OpKind::bias;
    if (joined) moved -= inside(o);
    const std::int64_t launches = joined ? 0 : 1;
    out_.backward.push_back(kernels_.stream(op, moved, op.kind == OpKind::norm ? 2 : launches));
  }

  /// Gradients of values that several operators take are added up.
  void write_added(std::size_t o) {
    for (int v : unit_.prepared.operators[o].adjoints_added) {
      out_.backward.push_back(kernels_.stream(op_at(o), 3 * kernels_.gradient_bytes(v), 1));
    }
  }

  const UnitKernels kernels_;
  const UnitTraffic& unit_;
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
