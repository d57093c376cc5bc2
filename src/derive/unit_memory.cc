#include "derive/unit_memory.h"

#include <algorithm>

#include "derive/gradient_shares.h"
#include "derive/routed_exchange.h"
#include "derive/unit_walk.h"
#include "units/at.h"

namespace placet {
namespace {

/// The two walks of one unit. Sizes are looked up once.
class UnitWalk : private UnitView {
 public:
  UnitWalk(const Layout& of, int unit, bool recomputed)
      : UnitView(of, unit, recomputed),
        routed_(routed_exchange(*this)),
        sizes_(kept_sizes(*this, routed_)),
        second_(second_layouts(*this, sizes_)) {}

  UnitMemory walk() {
    UnitMemory out;
    out.kept_whole = bytes_held(plan.kept);
    out.kept_on_host = in_bytes(part_rounded_up(bytes(out.kept_whole), kept_off_device(*this)));
    out.kept = out.kept_whole - out.kept_on_host;
    out.kept_on_nvme = out.kept_on_host > 0 && keeps_on_nvme(*this);
    out.passing = passing_casts();
    walk_forward(out);
    if (!plan.rebuilt.empty()) walk_again(out);
    walk_backward(out);
    read_parameters(*this, sizes_, out);
    return out;
  }

  /// Backward once more, in two parts, after `walk`.
  void walk_parts(UnitMemory& out) {
    raise(out.inputs, again_);
    walk_inputs(out);
    walk_weights(out);
  }

 private:
  /// Casts of weights that backward makes again.
  std::int64_t passing_casts() const {
    std::int64_t bytes = 0;
    for (std::size_t o = 0; o < kind.operators.size(); ++o) {
      if (!prepared.operators[o].casts_weights) continue;
      const std::size_t v = at(cast_of(kind, o));
      bytes += plan.is_kept[v] ? 0 : sizes_[v];
    }
    return bytes;
  }

  /// Whole copies of divided inputs that operator `op` computes with.
  std::int64_t gathered_inputs(const Operator& op) const {
    if (layout.cuts_both_sides) return whole_operands(op);
    if (op.region != Region::parallel) return 0;
    std::int64_t bytes = 0;
    for (int v : op.inputs) {
      const std::size_t i = at(v);
      if (!prepared.values[i].enters_parallel || local.gathered[i] == local.values[i]) continue;
      const std::size_t taken = taken_by(*this, op, i);
      const std::int64_t whole = bytes_of_value(*this, taken, local.gathered[i]);
      if (sizes_[taken] != whole) bytes += whole;
    }
    return bytes + sums_for_stream(op);
  }

  /// Results of operator `op` of which a part is kept: sums on their way there, and their gradients
  /// on the way back, are whole.
  std::int64_t sums_for_stream(const Operator& op) const {
    std::int64_t bytes = 0;
    for (const int v : op.outputs) {
      if (!is_for_stream(prepared.values[at(v)])) continue;
      const std::int64_t whole = bytes_of_value(*this, at(v), local.values[at(v)]);
      if (sizes_[at(v)] != whole) bytes += whole;
    }
    return bytes;
  }

  /// The same where axes cut both sides of matrices, sums of whole columns included.
  std::int64_t whole_operands(const Operator& op) const {
    std::int64_t bytes = 0;
    for_each_whole_operand(*this, op, [&](int v, std::int64_t elements) {
      const std::int64_t whole = bytes_of_value(*this, at(v), elements);
      if (sizes_[at(v)] != whole) bytes += whole;
    });
    return bytes;
  }

  /// The moment at which copies of tokens, or their gradients, change devices.
  static void raise_on_its_way(std::int64_t bytes, UnitPeak now, UnitPeak& most) {
    if (bytes == 0) return;
    now.exchange = {.message = bytes};
    raise(most, now);
  }

  ExchangeBytes exchanged(const Operator& op, Pass pass) const {
    if (layout.sequence_axes == 0 || op.kind != OpKind::attention) return {};
    return exchange_bytes(layout, local, op, pass);
  }

  /// What an operator's backward exchanges. Gradients of keys and values that are made whole become
  /// the device's parts afterwards: where parts stand apart, these are not there yet.
  void exchange_backward(const Operator& op, UnitPeak& peak) const {
    peak.exchange = exchanged(op, Pass::backward);
    if (!job.profile.parts_stand_apart || peak.exchange.sums == 0) return;
    for (const AttentionTensor tensor : {AttentionTensor::keys, AttentionTensor::values}) {
      peak.working -= sizes_[at(exchanged_value(op, tensor, job.profile))];
    }
  }

  /// The gradient of a norm's input is a sum of two: by the entry, and by its statistics. Where no
  /// other gradient is there that they are added to, the second stands beside the first, when the
  /// gradients of weight and result are done, and the statistics.
  void raise_second_summand(std::size_t o, UnitPeak peak, UnitPeak& most) const {
    const Operator& op = kind.operators[o];
    const PreparedOperator& facts = prepared.operators[o];
    const bool apart = job.profile.parts_stand_apart && op.kind == OpKind::norm;
    if (!apart || facts.adjoints_made.empty()) return;
    peak.working += bytes_of_values(facts.adjoints_made) - bytes_of_values(facts.adjoints_dead);
    for (int v : op.internals) {
      const bool done = std::ranges::find(plan.done[o], v) != plan.done[o].end();
      if (done) (plan.is_kept[at(v)] ? peak.kept : peak.rebuilt) -= held(v);
    }
    raise(most, peak);
  }

  std::int64_t workspace(const Operator& op) const {
    if (job.profile.fuses_output_and_loss) return 0;
    if (const std::vector<LossStep>& steps = steps_of_loss(layout); !steps.empty()) {
      return loss_workspace(steps, local.values[at(op.inputs.front())]).peak;
    }
    std::int64_t bytes = 0;
    for (int i : job.profile.loss_workspace) {
      if (at(i) >= op.internals.size()) continue;
      const int v = op.internals[at(i)];
      if (!plan.is_kept[at(v)]) bytes += sizes_[at(v)];
    }
    return bytes;
  }

  /// The loss before it lets the logits go; all zero where it keeps them.
  UnitPeak while_logits_live(const Operator& op, UnitPeak now) const {
    const std::vector<LossStep>& steps = steps_of_loss(layout);
    if (job.profile.fuses_output_and_loss || steps.empty()) return {};
    now.loss = loss_workspace(steps, local.values[at(op.inputs.front())]).forward;
    return now.loss == 0 ? UnitPeak{} : now;
  }

  static void raise(UnitPeak& most, const UnitPeak& now) {
    if (now.total() > most.total()) most = now;
  }

  /// A value that is there from now on, in forward.
  void count_made(int v, UnitPeak& now) const {
    if (plan.is_kept[at(v)]) {
      now.kept += held(v);
    } else {
      now.working += sizes_[at(v)];
    }
  }

  std::int64_t kept_internals(const Operator& op) const {
    std::int64_t bytes = 0;
    for (int v : op.internals) bytes += plan.is_kept[at(v)] ? sizes_[at(v)] : 0;
    return bytes;
  }

  /// What the kernel writes for a backward that will make it again.
  std::int64_t made_inside(const Operator& op) const {
    if (!job.profile.parts_stand_apart) return 0;
    const unsigned saved = job.profile.saved[static_cast<std::size_t>(op.kind)].internals;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < op.internals.size(); ++i) {
      const bool written = (saved >> i & 1U) != 0 && !plan.is_kept[at(op.internals[i])];
      if (written) bytes += sizes_[at(op.internals[i])];
    }
    return bytes;
  }

  /// An operator's moment in forward; the loss has its own.
  void raise_forward(const Operator& op, const UnitPeak& now, UnitMemory& out) const {
    if (op.kind != OpKind::loss) {
      raise(out.forward, now);
      return;
    }
    raise(out.loss, now);
    out.loss_forward = while_logits_live(op, now);
  }

  void walk_forward(UnitMemory& out) const {
    UnitPeak now;
    if (!kind.values.empty() && prepared.values[0].producer < 0) count_made(0, now);
    for (std::size_t o = 0; o < kind.operators.size(); ++o) {
      const Operator& op = kind.operators[o];
      raise_on_its_way(routed_.before_forward(kind, o), now, out.forward);
      for (int v : prepared.operators[o].made) count_made(v, now);
      now.kept += kept_internals(op);
      now.gathered = gathered_inputs(op);
      now.loss = op.kind == OpKind::loss ? workspace(op) : 0;
      now.exchange = exchanged(op, Pass::forward);
      const std::int64_t inside = made_inside(op);
      now.working += inside;
      raise_forward(op, now, out);
      now.working -= inside;
      for (int v : prepared.operators[o].dead_after) {
        if (!plan.is_kept[at(v)]) now.working -= sizes_[at(v)];
      }
    }
  }

  /// The values of a second forward, as they come and go.
  struct SecondForward {
    UnitPeak now;
    std::vector<bool> stays;     // by value: backward needs it
    std::vector<bool> is_there;  // by value
  };

  void make_again(int v, SecondForward& walk) const {
    if (!walk.is_there[at(v)]) walk.now.rebuilt += walk.stays[at(v)] ? held(v) : sizes_[at(v)];
    walk.is_there[at(v)] = true;
  }

  void free_again(int v, SecondForward& walk) const {
    if (walk.stays[at(v)] || plan.is_kept[at(v)] || !walk.is_there[at(v)]) return;
    walk.now.rebuilt -= sizes_[at(v)];
    walk.is_there[at(v)] = false;
  }

  void run_again(std::size_t o, SecondForward& walk) {
    const Operator& op = kind.operators[o];
    raise_on_its_way(routed_.before_forward(kind, o), walk.now, again_);
    for (int v : prepared.operators[o].made) make_again(v, walk);
    for (int v : op.internals) {
      if (walk.stays[at(v)]) make_again(v, walk);
    }
    walk.now.gathered = gathered_inputs(op);
    walk.now.exchange = exchanged(op, Pass::forward);
    raise(again_, walk.now);
    for (int v : plan.dead_again[o]) free_again(v, walk);
  }

  /// The second forward of what is recomputed, beside the gradient that waits for the backward:
  /// what backward needs stays, the rest passes by, and can be more than backward itself holds.
  void walk_again(UnitMemory& out) {
    SecondForward walk{.stays = std::vector<bool>(sizes_.size(), false), .is_there = plan.is_kept};
    walk.now.kept = out.kept_whole;
    if (prepared.output >= 0) walk.now.working = sizes_[at(prepared.output)];
    for (int v : plan.rebuilt) walk.stays[at(v)] = true;
    for (std::size_t o = 0; o < kind.operators.size(); ++o) {
      if (runs_again(kind, plan, o)) run_again(o, walk);
    }
    raise(out.backward, again_);
  }

  std::int64_t weight_gradients(const Operator& op) const {
    if (job.profile.fuses_weight_gradient) return 0;
    std::int64_t bytes = 0;
    for (int p : op.parameters) {
      const LocalParameter& parameter = local.parameters[at(p)];
      if (parameter.trainable) {
        bytes += in_bytes(bytes_of(parameter.elements, job.precision.compute));
      }
    }
    return bytes;
  }

  bool scatters(const Operator& op) const {
    return std::ranges::any_of(op.parameters, [&](int p) {
      const LocalParameter& parameter = local.parameters[at(p)];
      return parameter.trainable && (parameter.scattered_each | parameter.consumed) != 0;
    });
  }

  /// Of a value that is kept, or made again, for backward.
  std::int64_t held(int v) const { return sizes_[at(v)] + second_[at(v)]; }

  std::int64_t bytes_held(const std::vector<int>& values) const {
    std::int64_t bytes = 0;
    for (int v : values) bytes += held(v);
    return bytes;
  }

  std::int64_t bytes_of_values(const std::vector<int>& values) const {
    std::int64_t bytes = 0;
    for (int v : values) bytes += sizes_[at(v)];
    return bytes;
  }

  /// What backward begins with: values, and the gradient of what the unit hands on.
  UnitPeak before_backward(const UnitMemory& out) const {
    UnitPeak now;
    now.kept = out.kept_whole;
    if (job.profile.parts_stand_apart) now.kept -= bytes_held(plan.only_again);
    now.rebuilt = bytes_held(plan.rebuilt);
    if (prepared.output >= 0) now.working = sizes_[at(prepared.output)];
    return now;
  }

  void walk_backward(UnitMemory& out) {
    if (!prepared.gradients.backward) return;
    UnitPeak now = before_backward(out);
    shares_ = GradientShares(sizes_.size());
    for (std::size_t o = kind.operators.size(); o-- > 0;) run_backward(o, now, out);
    if (job.profile.parts_stand_apart) find_scatter(now.weight_gradient, out);
  }

  /// The unit's backward is done: its gradients are scattered into parts of their own, beside the
  /// gradient that is handed on.
  void find_scatter(std::int64_t whole, UnitMemory& out) const {
    std::int64_t own = 0;
    for (std::size_t p = 0; p < local.parameters.size(); ++p) {
      const LocalParameter& parameter = local.parameters[p];
      const AxisMask each = parameter.partial & parameter.scattered_each;
      if (!parameter.trainable || each == 0 || is_shared_here(*this, kind.parameters[p])) continue;
      own += in_bytes(
          bytes_of(own_part(layout, parameter, parameter.elements, each), job.precision.reduce));
    }
    if (own == 0) return;
    const bool samples = kind.values.empty() || kind.values[0].type == ValueType::int64;
    const bool hands_on = !samples && prepared.gradients.values[0];
    out.scatter.working = hands_on ? sizes_[0] : 0;
    out.scatter.kept = samples && !sizes_.empty() && plan.is_kept[0] ? sizes_[0] : 0;
    out.scatter.weight_gradient = whole + own;
  }

  /// Gradients of values alone. What the weights' part reads stays.
  void walk_inputs(UnitMemory& out) {
    if (!prepared.gradients.backward) return;
    shares_ = GradientShares(sizes_.size());
    std::vector<bool> stays(sizes_.size(), false);
    for (int v : plan.for_weights) stays[at(v)] = true;
    UnitPeak now = before_backward(out);
    for (std::size_t o = kind.operators.size(); o-- > 0;) {
      const PreparedOperator& facts = prepared.operators[o];
      if (!facts.backward) continue;
      raise_on_its_way(routed_.before_backward(kind, o), now, out.inputs);
      run_inputs(kind.operators[o], facts, now, out);
      for (int v : plan.done[o]) {
        if (!stays[at(v)]) (plan.is_kept[at(v)] ? now.kept : now.rebuilt) -= held(v);
      }
    }
    out.waiting = now.waiting + bytes_held(plan.for_weights);
  }

  void run_inputs(const Operator& op, const PreparedOperator& facts, UnitPeak& now,
                  UnitMemory& out) {
    for (int v : op.outputs) now.working -= shares_.join(v) ? sizes_[at(v)] : 0;
    for (int v : facts.parts.made) shares_.make(v, gives_parts(op));
    now.working += bytes_of_values(facts.parts.made);
    UnitPeak peak = now;
    peak.working += bytes_of_values(facts.parts.added) + bytes_of_values(facts.inner_gradients);
    peak.gathered = op.parameters.empty() ? gathered_inputs(op) : sums_for_stream(op);
    exchange_backward(op, peak);
    if (op.kind == OpKind::loss) peak.loss = workspace(op);
    raise(out.inputs, peak);
    for (int v : facts.parts.added) {
      now.working += shares_.stays(v, gives_parts(op)) ? sizes_[at(v)] : 0;
    }
    const std::int64_t carried = bytes_of_values(facts.parts.carried);
    now.working -= carried + bytes_of_values(facts.parts.dead);
    now.waiting += carried;
  }

  /// Gradients of weights, from what waits; each part of it goes with its last reader.
  void walk_weights(UnitMemory& out) const {
    if (!prepared.gradients.backward) return;
    UnitPeak now{.waiting = out.waiting};
    for (std::size_t o = kind.operators.size(); o-- > 0;) {
      const Operator& op = kind.operators[o];
      const std::int64_t own = weight_gradients(op);
      UnitPeak peak = now;
      if (!op.parameters.empty()) peak.gathered = gathered_inputs(op);
      peak.weight_gradient += own;
      raise(out.weights, peak);
      if (job.profile.gradient_hold != GradientHold::op || scatters(op)) now.weight_gradient += own;
      now.waiting -=
          bytes_of_values(prepared.operators[o].parts.released) + bytes_held(plan.done_weights[o]);
    }
    out.scatter_weights = out.scatter;
    out.scatter_weights.working = 0;
  }

  /// One operator backward. `now` holds in weight_gradient what is scattered only when the unit is
  /// done.
  void run_backward(std::size_t o, UnitPeak& now, UnitMemory& out) {
    const Operator& op = kind.operators[o];
    const PreparedOperator& facts = prepared.operators[o];
    if (!facts.backward) return;
    for (int v : op.outputs) now.working -= shares_.join(v) ? sizes_[at(v)] : 0;
    for (int v : facts.adjoints_made) shares_.make(v, gives_parts(op));
    raise_on_its_way(routed_.before_backward(kind, o), now, out.backward);
    now.working += bytes_of_values(facts.adjoints_made);
    const std::int64_t own = weight_gradients(op);
    UnitPeak peak = now;
    peak.working += bytes_of_values(facts.adjoints_added) + bytes_of_values(facts.inner_gradients);
    peak.gathered = gathered_inputs(op);
    peak.weight_gradient += own;
    exchange_backward(op, peak);
    if (op.kind == OpKind::loss) peak.loss = workspace(op);
    raise(out.backward, peak);
    if (job.profile.gradient_hold != GradientHold::op || scatters(op)) now.weight_gradient += own;
    for (int v : facts.adjoints_added) {
      now.working += shares_.stays(v, gives_parts(op)) ? sizes_[at(v)] : 0;
    }
    peak.weight_gradient = now.weight_gradient;
    raise_second_summand(o, peak, out.backward);
    now.working -= bytes_of_values(facts.adjoints_dead);
    for (int v : plan.done[o]) {
      (plan.is_kept[at(v)] ? now.kept : now.rebuilt) -= held(v);
    }
  }

  RoutedExchange routed_;
  std::vector<std::int64_t> sizes_;   // by value
  std::vector<std::int64_t> second_;  // of what is kept in two layouts, the second one
  GradientShares shares_{0};
  UnitPeak again_;  // the fullest point of what is made again
};

}  // namespace

const std::vector<LossStep>& steps_of_loss(const Layout& layout) {
  const Profile& profile = layout.job->profile;
  const bool cut = layout.tensor_degree > 1 && !profile.loss_steps_cut.empty();
  return cut ? profile.loss_steps_cut : profile.loss_steps;
}

LossWorkspace loss_workspace(const std::vector<LossStep>& steps, std::int64_t logits) {
  LossWorkspace out;
  for (const LossStep& step : steps) {
    if (!step.appears && step.buffer == "logits") out.forward = out.peak;
    out.left += (step.appears ? 1 : -1) * step.bytes_per_logit * logits;
    out.peak = std::max(out.peak, out.left);
  }
  return out;
}

ValueBytes value_bytes(const Layout& layout, int unit, bool recomputed) {
  const UnitView view(layout, unit, recomputed);
  ValueBytes bytes{.once = kept_sizes(view, routed_exchange(view)), .held = {}};
  bytes.held = second_layouts(view, bytes.once);
  for (std::size_t v = 0; v < bytes.held.size(); ++v) bytes.held[v] += bytes.once[v];
  return bytes;
}

UnitMemory unit_memory(const Layout& layout, int unit, bool recomputed) {
  if (splits_backward(layout)) return unit_memory_in_parts(layout, unit, recomputed);
  return UnitWalk(layout, unit, recomputed).walk();
}

UnitMemory unit_memory_in_parts(const Layout& layout, int unit, bool recomputed) {
  UnitWalk walk(layout, unit, recomputed);
  UnitMemory out = walk.walk();
  walk.walk_parts(out);
  return out;
}

}  // namespace placet
