#include "derive/unit_memory.h"

#include <algorithm>

#include "derive/state_bytes.h"
#include "derive/update_inputs.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

/// Of one value: a petabyte on one device, and the sums over a unit stay far below 2^63.
constexpr std::int64_t kMostElements = std::int64_t{1} << 50;

/// The two walks of one unit. Sizes are looked up once.
class UnitWalk {
 public:
  UnitWalk(const Layout& layout, int unit, bool recomputed)
      : layout_(layout),
        job_(*layout.job),
        local_(layout.units[at(unit)]),
        kind_(job_.model.kinds[at(local_.kind)]),
        prepared_(layout.prepared->kinds[at(local_.kind)]),
        plan_(recomputed ? prepared_.recomputed : prepared_.plain) {
    sizes_.reserve(kind_.values.size());
    for (std::size_t v = 0; v < kind_.values.size(); ++v) sizes_.push_back(stored_bytes(v));
    if (job_.profile.fuses_output_and_loss) forget_logits();
    copy_shared_heads();
  }

  const std::vector<std::int64_t>& sizes() const { return sizes_; }

  UnitMemory walk() {
    UnitMemory out;
    for (int v : plan_.kept) out.kept_whole += sizes_[at(v)];
    const Rational host = plan_.whole_unit ? checkpoint_host_part() : activation_host_part();
    out.kept_on_host = in_bytes(part_rounded_up(bytes(out.kept_whole), host));
    out.kept = out.kept_whole - out.kept_on_host;
    out.kept_on_nvme = out.kept_on_host > 0 && keeps_on_nvme();
    walk_forward(out);
    if (!plan_.rebuilt.empty()) walk_again(out);
    walk_backward(out);
    read_parameters(out);
    return out;
  }

  /// Backward once more, in two parts, after `walk`.
  void walk_parts(UnitMemory& out) const {
    raise(out.inputs, again_);
    walk_inputs(out);
    walk_weights(out);
  }

 private:
  void forget_logits() {
    for (const Operator& op : kind_.operators) {
      if (op.kind != OpKind::loss) continue;
      for (int v : op.inputs) sizes_[at(v)] = 0;
      for (int v : op.internals) sizes_[at(v)] = 0;
    }
  }

  std::int64_t type_bits(ValueType type) const {
    switch (type) {
      case ValueType::compute:
        return bits_of(job_.precision.compute);
      case ValueType::fp32:
        return 32;
      case ValueType::mask:
        return 8;
      case ValueType::int64:
        return 64;
    }
    return 0;
  }

  std::int64_t value_bytes(std::size_t v, std::int64_t elements) const {
    if (elements > kMostElements) throw_overflow("bytes of an activation", "product");
    return (elements * type_bits(kind_.values[v].type) + 7) / 8;
  }

  /// Bytes of a value where it is kept: an input gathered for a parallel region is kept as the
  /// device's own part or whole, as the profile says; a checkpoint may be divided once more.
  std::int64_t stored_bytes(std::size_t v) const {
    const bool whole = job_.profile.gathered_input == GatheredInput::whole &&
                       prepared_.values[v].enters_parallel && plan_.is_kept[v] && !plan_.whole_unit;
    std::int64_t elements = whole ? local_.gathered[v] : local_.values[v];
    if (plan_.whole_unit && v == 0) elements = own_part(layout_, elements, checkpoint_axes());
    return value_bytes(v, elements);
  }

  /// Tensor axes that divide checkpoints although the stream is whole there.
  AxisMask checkpoint_axes() const {
    AxisMask axes = 0;
    for (std::size_t a = 0; a < job_.placement.axes.size(); ++a) {
      const AxisPlacement& axis = job_.placement.axes[a];
      const How* how = checkpoint_how(axis);
      const bool divided_already = axis.how.modes.activations == Mode::sharded_gather;
      if (how != nullptr && axis.how.cut == Cut::tensor && !divided_already &&
          how->modes.activations == Mode::sharded_gather) {
        axes |= axis_bit(static_cast<int>(a));
      }
    }
    return axes;
  }

  static const How* checkpoint_how(const AxisPlacement& axis) {
    const How* found = nullptr;
    for (const Override& o : axis.overrides) {
      if (std::holds_alternative<Checkpoints>(o.selector)) found = &o.how;
    }
    return found;
  }

  static Rational host_part(const How& how) {
    if (how.modes.activations == Mode::offloaded) return Rational(1);
    const auto& offload = how.offload[static_cast<std::size_t>(State::activations)];
    return offload ? offload->fraction : Rational(0);
  }

  Rational activation_host_part() const {
    Rational part(0);
    for (const AxisPlacement& axis : job_.placement.axes) {
      part = std::max(part, host_part(axis.how));
    }
    return part;
  }

  Rational checkpoint_host_part() const {
    Rational part = activation_host_part();
    for (const AxisPlacement& axis : job_.placement.axes) {
      if (const How* how = checkpoint_how(axis)) part = std::max(part, host_part(*how));
    }
    return part;
  }

  static bool is_on_nvme(const How& how) {
    const auto& offload = how.offload[static_cast<std::size_t>(State::activations)];
    return offload && offload->medium == Medium::nvme;
  }

  bool keeps_on_nvme() const {
    return std::ranges::any_of(job_.placement.axes, [&](const AxisPlacement& axis) {
      const How* how = plan_.whole_unit ? checkpoint_how(axis) : nullptr;
      return is_on_nvme(axis.how) || (how != nullptr && is_on_nvme(*how));
    });
  }

  /// Whole copies of divided inputs that operator `op` computes with.
  std::int64_t gathered_inputs(const Operator& op) const {
    if (op.region != Region::parallel) return 0;
    std::int64_t bytes = 0;
    for (int v : op.inputs) {
      const std::size_t i = at(v);
      if (!prepared_.values[i].enters_parallel || local_.gathered[i] == local_.values[i]) continue;
      const std::int64_t whole = value_bytes(i, local_.gathered[i]);
      if (sizes_[i] != whole) bytes += whole;
    }
    return bytes;
  }

  ExchangeBytes exchanged(const Operator& op, Pass pass) const {
    if (layout_.sequence_axes == 0 || op.kind != OpKind::attention) return {};
    return exchange_bytes(layout_, local_, op, pass);
  }

  std::int64_t workspace(const Operator& op) const {
    if (job_.profile.fuses_output_and_loss) return 0;
    if (const std::vector<LossStep>& steps = steps_of_loss(layout_); !steps.empty()) {
      return loss_workspace(steps, local_.values[at(op.inputs.front())]).peak;
    }
    std::int64_t bytes = 0;
    for (int i : job_.profile.loss_workspace) {
      if (at(i) >= op.internals.size()) continue;
      const int v = op.internals[at(i)];
      if (!plan_.is_kept[at(v)]) bytes += sizes_[at(v)];
    }
    return bytes;
  }

  static void raise(UnitPeak& most, const UnitPeak& now) {
    if (now.total() > most.total()) most = now;
  }

  /// A value that is there from now on, in forward.
  void count_made(int v, UnitPeak& now) const {
    (plan_.is_kept[at(v)] ? now.kept : now.working) += sizes_[at(v)];
  }

  std::int64_t kept_internals(const Operator& op) const {
    std::int64_t bytes = 0;
    for (int v : op.internals) bytes += plan_.is_kept[at(v)] ? sizes_[at(v)] : 0;
    return bytes;
  }

  /// What the kernel writes for a backward that will make it again.
  std::int64_t made_inside(const Operator& op) const {
    if (!job_.profile.parts_stand_apart) return 0;
    const unsigned saved = job_.profile.saved[static_cast<std::size_t>(op.kind)].internals;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < op.internals.size(); ++i) {
      const bool written = (saved >> i & 1U) != 0 && !plan_.is_kept[at(op.internals[i])];
      if (written) bytes += sizes_[at(op.internals[i])];
    }
    return bytes;
  }

  void walk_forward(UnitMemory& out) const {
    UnitPeak now;
    if (!kind_.values.empty() && prepared_.values[0].producer < 0) count_made(0, now);
    for (std::size_t o = 0; o < kind_.operators.size(); ++o) {
      const Operator& op = kind_.operators[o];
      const bool is_loss = op.kind == OpKind::loss;
      for (int v : prepared_.operators[o].made) count_made(v, now);
      now.kept += kept_internals(op);
      now.gathered = gathered_inputs(op);
      now.loss = is_loss ? workspace(op) : 0;
      now.exchange = exchanged(op, Pass::forward);
      const std::int64_t inside = made_inside(op);
      now.working += inside;
      raise(is_loss ? out.loss : out.forward, now);
      now.working -= inside;
      for (int v : prepared_.operators[o].dead_after) {
        if (!plan_.is_kept[at(v)]) now.working -= sizes_[at(v)];
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
    if (!walk.is_there[at(v)]) walk.now.rebuilt += sizes_[at(v)];
    walk.is_there[at(v)] = true;
  }

  void free_again(int v, SecondForward& walk) const {
    if (walk.stays[at(v)] || plan_.is_kept[at(v)] || !walk.is_there[at(v)]) return;
    walk.now.rebuilt -= sizes_[at(v)];
    walk.is_there[at(v)] = false;
  }

  void run_again(std::size_t o, SecondForward& walk) {
    const Operator& op = kind_.operators[o];
    for (int v : prepared_.operators[o].made) make_again(v, walk);
    for (int v : op.internals) {
      if (walk.stays[at(v)]) make_again(v, walk);
    }
    walk.now.gathered = gathered_inputs(op);
    walk.now.exchange = exchanged(op, Pass::forward);
    raise(again_, walk.now);
    for (int v : prepared_.operators[o].dead_after) free_again(v, walk);
  }

  /// The second forward of what is recomputed, beside the gradient that waits for the backward:
  /// what backward needs stays, the rest passes by, and can be more than backward itself holds.
  void walk_again(UnitMemory& out) {
    SecondForward walk{.stays = std::vector<bool>(sizes_.size(), false), .is_there = plan_.is_kept};
    walk.now.kept = out.kept_whole;
    if (prepared_.output >= 0) walk.now.working = sizes_[at(prepared_.output)];
    for (int v : plan_.rebuilt) walk.stays[at(v)] = true;
    for (std::size_t o = 0; o < kind_.operators.size(); ++o) {
      if (runs_again(kind_, plan_, o)) run_again(o, walk);
    }
    raise(out.backward, again_);
  }

  std::int64_t weight_gradients(const Operator& op) const {
    if (job_.profile.fuses_weight_gradient) return 0;
    std::int64_t bytes = 0;
    for (int p : op.parameters) {
      const LocalParameter& parameter = local_.parameters[at(p)];
      if (parameter.trainable) {
        bytes += in_bytes(bytes_of(parameter.elements, job_.precision.compute));
      }
    }
    return bytes;
  }

  bool scatters(const Operator& op) const {
    return std::ranges::any_of(op.parameters, [&](int p) {
      const LocalParameter& parameter = local_.parameters[at(p)];
      return parameter.trainable && (parameter.scattered_each | parameter.consumed) != 0;
    });
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
    if (job_.profile.parts_stand_apart) now.kept -= bytes_of_values(plan_.only_again);
    now.rebuilt = bytes_of_values(plan_.rebuilt);
    if (prepared_.output >= 0) now.working = sizes_[at(prepared_.output)];
    return now;
  }

  void walk_backward(UnitMemory& out) const {
    if (!prepared_.gradients.backward) return;
    UnitPeak now = before_backward(out);
    for (std::size_t o = kind_.operators.size(); o-- > 0;) run_backward(o, now, out);
    if (job_.profile.parts_stand_apart) find_scatter(now.weight_gradient, out);
  }

  /// The unit's backward is done: its gradients are scattered into parts of their own, beside the
  /// gradient that is handed on.
  void find_scatter(std::int64_t whole, UnitMemory& out) const {
    std::int64_t own = 0;
    for (std::size_t p = 0; p < local_.parameters.size(); ++p) {
      const LocalParameter& parameter = local_.parameters[p];
      const AxisMask each = parameter.partial & parameter.scattered_each;
      if (!parameter.trainable || each == 0 || is_shared(kind_.parameters[p])) continue;
      own += in_bytes(bytes_of(own_part(layout_, parameter.elements, each), job_.precision.reduce));
    }
    if (own == 0) return;
    const bool samples = kind_.values.empty() || kind_.values[0].type != ValueType::compute;
    const bool hands_on = !samples && prepared_.gradients.values[0];
    out.scatter.working = hands_on ? sizes_[0] : 0;
    out.scatter.kept = samples ? out.kept_whole : 0;
    out.scatter.weight_gradient = whole + own;
  }

  /// Gradients of values alone. What the weights' part reads stays.
  void walk_inputs(UnitMemory& out) const {
    if (!prepared_.gradients.backward) return;
    std::vector<bool> stays(sizes_.size(), false);
    for (int v : plan_.for_weights) stays[at(v)] = true;
    UnitPeak now = before_backward(out);
    for (std::size_t o = kind_.operators.size(); o-- > 0;) {
      const PreparedOperator& facts = prepared_.operators[o];
      if (!facts.backward) continue;
      run_inputs(kind_.operators[o], facts, now, out);
      for (int v : plan_.done[o]) {
        if (!stays[at(v)]) (plan_.is_kept[at(v)] ? now.kept : now.rebuilt) -= sizes_[at(v)];
      }
    }
    out.waiting = now.waiting + bytes_of_values(plan_.for_weights);
  }

  void run_inputs(const Operator& op, const PreparedOperator& facts, UnitPeak& now,
                  UnitMemory& out) const {
    now.working += bytes_of_values(facts.parts.made);
    UnitPeak peak = now;
    peak.working += bytes_of_values(facts.parts.added) + bytes_of_values(facts.inner_gradients);
    if (op.parameters.empty()) peak.gathered = gathered_inputs(op);
    peak.exchange = exchanged(op, Pass::backward);
    if (op.kind == OpKind::loss) peak.loss = workspace(op);
    raise(out.inputs, peak);
    const std::int64_t carried = bytes_of_values(facts.parts.carried);
    now.working -= carried + bytes_of_values(facts.parts.dead);
    now.waiting += carried;
  }

  /// Gradients of weights, from what waits; each part of it goes with its last reader.
  void walk_weights(UnitMemory& out) const {
    if (!prepared_.gradients.backward) return;
    UnitPeak now{.waiting = out.waiting};
    for (std::size_t o = kind_.operators.size(); o-- > 0;) {
      const Operator& op = kind_.operators[o];
      const std::int64_t own = weight_gradients(op);
      UnitPeak peak = now;
      if (!op.parameters.empty()) peak.gathered = gathered_inputs(op);
      peak.weight_gradient += own;
      raise(out.weights, peak);
      if (job_.profile.gradient_hold != GradientHold::op || scatters(op))
        now.weight_gradient += own;
      now.waiting -= bytes_of_values(prepared_.operators[o].parts.released) +
                     bytes_of_values(plan_.done_weights[o]);
    }
    out.scatter_weights = out.scatter;
    out.scatter_weights.working = 0;
  }

  /// Whether it is another unit's tensor, of this device.
  bool is_shared(const Parameter& parameter) const { return parameter.tied && layout_.stages == 1; }

  /// One operator backward. `now` holds in weight_gradient what is scattered only when the unit is
  /// done.
  void run_backward(std::size_t o, UnitPeak& now, UnitMemory& out) const {
    const Operator& op = kind_.operators[o];
    const PreparedOperator& facts = prepared_.operators[o];
    if (!facts.backward) return;
    now.working += bytes_of_values(facts.adjoints_made);
    const std::int64_t own = weight_gradients(op);
    UnitPeak peak = now;
    peak.working += bytes_of_values(facts.adjoints_added) + bytes_of_values(facts.inner_gradients);
    peak.gathered = gathered_inputs(op);
    peak.weight_gradient += own;
    peak.exchange = exchanged(op, Pass::backward);
    if (op.kind == OpKind::loss) peak.loss = workspace(op);
    raise(out.backward, peak);
    if (job_.profile.gradient_hold != GradientHold::op || scatters(op)) now.weight_gradient += own;
    now.working -= bytes_of_values(facts.adjoints_dead);
    for (int v : plan_.done[o]) {
      (plan_.is_kept[at(v)] ? now.kept : now.rebuilt) -= sizes_[at(v)];
    }
  }

  /// What is gathered from host memory, or from the master, is first copied: a part of its own.
  void count_parts(const Parameter& declared, const LocalParameter& parameter,
                   UnitMemory& out) const {
    const AxisMask axes = gathered_axes(parameter);
    const bool copied = parameter.materialized != 0 || parameter.on_host[0] != Rational(0);
    if (!job_.profile.parts_stand_apart || !copied || degree_of(job_.placement, axes) == 1) return;
    const std::int64_t part = own_part(layout_, parameter.elements, axes);
    out.gathered_from += in_bytes(gathered_bytes(job_, declared, part));
  }

  void read_parameters(UnitMemory& out) const {
    if (!sizes_.empty()) out.begins_with = {.working = sizes_[0]};
    if (prepared_.output >= 0 && prepared_.gradients.backward) {
      out.ends_with.working = sizes_[at(prepared_.output)];
    }
    out.ends_with.kept = out.kept_whole;
    for (std::size_t p = 0; p < local_.parameters.size(); ++p) {
      const LocalParameter& parameter = local_.parameters[p];
      const Parameter& declared = kind_.parameters[p];
      const bool gathers = (parameter.rests_in_part | parameter.materialized) != 0;
      // What stays gathered over the step is there for all its uses.
      if (gathers && is_shared(declared) && parameter.keep == Keep::step) {
        out.keep = Keep::step;
      } else if (gathers) {
        out.gathered_parameters += in_bytes(gathered_bytes(job_, declared, parameter.elements));
        out.keep = std::max(out.keep, parameter.keep);
        keep_parts(declared, parameter, out);
        count_parts(declared, parameter, out);
      } else if (parameter.on_host[0] != Rational(0)) {
        const std::int64_t copied = elements_moved(parameter.elements, parameter.on_host[0]);
        out.gathered_parameters += in_bytes(gathered_bytes(job_, declared, copied));
      }
      if (parameter.trainable) {
        out.weight_gradients += in_bytes(bytes_of(parameter.elements, job_.precision.compute));
      }
      if (parameter.trainable && (parameter.scattered_each | parameter.consumed) != 0) {
        out.gradient_whole += in_bytes(bytes_of(parameter.elements, job_.precision.compute));
      }
    }
    // A model without operators has no walk: its gradients appear whole, unit by unit.
    if (kind_.operators.empty()) out.backward.weight_gradient = out.gradient_whole;
  }

  /// What is gathered over several axes and kept along some of them only goes back to the parts of
  /// the others: a copy beside the part that rests.
  void keep_parts(const Parameter& declared, const LocalParameter& parameter,
                  UnitMemory& out) const {
    const AxisMask step = parameter.keep == Keep::step ? 0 : parameter.kept_step;
    const AxisMask backward = parameter.keep == Keep::none ? parameter.kept & ~step : 0;
    if (step != 0) out.kept_parts_step += part_bytes(declared, parameter, step);
    if (backward != 0) out.kept_parts += part_bytes(declared, parameter, step | backward);
  }

  /// Bytes of a device's part of a parameter that is whole along the axes `kept`.
  std::int64_t part_bytes(const Parameter& declared, const LocalParameter& parameter,
                          AxisMask kept) const {
    const AxisMask divided = gathered_axes(parameter) & ~kept;
    return in_bytes(gathered_bytes(job_, declared, own_part(layout_, parameter.elements, divided)));
  }

  /// Keys and values that are exchanged for heads stand on the device as often as they were sent:
  /// so the core reads and keeps them.
  void copy_shared_heads() {
    if (layout_.sequence_axes == 0) return;
    for (const Operator& op : kind_.operators) {
      if (op.kind != OpKind::attention || op.inputs.size() < 3) continue;
      for (const AttentionTensor tensor : {AttentionTensor::keys, AttentionTensor::values}) {
        const int v = exchanged_value(op, tensor, job_.profile);
        std::int64_t& size = sizes_[at(prepared_.values[at(v)].root)];
        size =
            checked_multiply(size, copies_of_heads(layout_, local_, v), "bytes of an activation");
      }
    }
  }

  const Layout& layout_;
  const Job& job_;
  const LocalUnit& local_;
  const UnitKind& kind_;
  const PreparedKind& prepared_;
  const SavedPlan& plan_;
  std::vector<std::int64_t> sizes_;
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
    out.left += (step.appears ? 1 : -1) * step.bytes_per_logit * logits;
    out.peak = std::max(out.peak, out.left);
  }
  return out;
}

std::vector<std::int64_t> value_bytes(const Layout& layout, int unit, bool recomputed) {
  return UnitWalk(layout, unit, recomputed).sizes();
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
