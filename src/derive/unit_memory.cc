#include "derive/unit_memory.h"

#include <algorithm>

#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

/// Of one value: a petabyte on one device, and the sums over a unit stay far below 2^63.
constexpr std::int64_t kMostElements = std::int64_t{1} << 50;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

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
  }

  const std::vector<std::int64_t>& sizes() const { return sizes_; }

  UnitMemory walk() {
    UnitMemory out;
    for (int v : plan_.kept) out.kept_whole += sizes_[at(v)];
    const Rational host = plan_.whole_unit ? checkpoint_host_part() : activation_host_part();
    out.kept_on_host = in_bytes(part_rounded_up(bytes(out.kept_whole), host));
    out.kept = out.kept_whole - out.kept_on_host;
    walk_forward(out);
    if (!plan_.rebuilt.empty()) walk_again(out);
    walk_backward(out);
    read_parameters(out);
    return out;
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
    if (plan_.whole_unit && v == 0) elements = largest_share(elements, checkpoint_division());
    return value_bytes(v, elements);
  }

  /// Tensor axes that divide checkpoints although the stream is whole there.
  std::int64_t checkpoint_division() const {
    std::int64_t division = 1;
    for (const AxisPlacement& axis : job_.placement.axes) {
      const How* how = checkpoint_how(axis);
      const bool divided_already = axis.how.modes.activations == Mode::sharded_gather;
      if (how != nullptr && axis.how.cut == Cut::tensor && !divided_already &&
          how->modes.activations == Mode::sharded_gather) {
        division *= axis.degree;
      }
    }
    return division;
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

  void walk_forward(UnitMemory& out) const {
    std::int64_t kept = 0;
    std::int64_t working = 0;
    auto count_made = [&](int v) { (plan_.is_kept[at(v)] ? kept : working) += sizes_[at(v)]; };
    if (!kind_.values.empty() && prepared_.values[0].producer < 0) count_made(0);
    for (std::size_t o = 0; o < kind_.operators.size(); ++o) {
      const Operator& op = kind_.operators[o];
      for (int v : prepared_.operators[o].made) count_made(v);
      for (int v : op.internals) {
        if (plan_.is_kept[at(v)]) kept += sizes_[at(v)];
      }
      UnitPeak peak{.kept = kept, .working = working, .gathered = gathered_inputs(op)};
      if (op.kind == OpKind::loss) {
        peak.loss = workspace(op);
        if (peak.total() > out.loss.total()) out.loss = peak;
      } else if (peak.total() > out.forward.total()) {
        out.forward = peak;
      }
      for (int v : prepared_.operators[o].dead_after) {
        if (!plan_.is_kept[at(v)]) working -= sizes_[at(v)];
      }
    }
  }

  bool runs_again(const Operator& op) const {
    return std::ranges::find(plan_.modules, op.module) != plan_.modules.end();
  }

  /// The second forward of what is recomputed, beside the gradient that waits for the backward:
  /// what backward needs stays, the rest passes by, and can be more than backward itself holds.
  void walk_again(UnitMemory& out) const {
    UnitPeak now;
    now.kept = out.kept_whole;
    if (prepared_.output >= 0) now.working = sizes_[at(prepared_.output)];
    std::vector<bool> stays(sizes_.size(), false);
    for (int v : plan_.rebuilt) stays[at(v)] = true;
    std::vector<bool> is_there = plan_.is_kept;
    const auto make = [&](int v) {
      if (!is_there[at(v)]) now.rebuilt += sizes_[at(v)];
      is_there[at(v)] = true;
    };
    for (std::size_t o = 0; o < kind_.operators.size(); ++o) {
      const Operator& op = kind_.operators[o];
      if (!runs_again(op)) continue;
      for (int v : prepared_.operators[o].made) make(v);
      for (int v : op.internals) {
        if (stays[at(v)]) make(v);
      }
      now.gathered = gathered_inputs(op);
      if (now.total() > out.backward.total()) out.backward = now;
      for (int v : prepared_.operators[o].dead_after) {
        if (stays[at(v)] || plan_.is_kept[at(v)] || !is_there[at(v)]) continue;
        now.rebuilt -= sizes_[at(v)];
        is_there[at(v)] = false;
      }
    }
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

  void walk_backward(UnitMemory& out) const {
    UnitPeak now;
    now.kept = out.kept_whole;
    for (int v : plan_.rebuilt) now.rebuilt += sizes_[at(v)];
    if (prepared_.output >= 0) now.working = sizes_[at(prepared_.output)];
    std::int64_t held_gradients = 0;  // scattered only when the unit is done
    for (std::size_t o = kind_.operators.size(); o-- > 0;) {
      const Operator& op = kind_.operators[o];
      const PreparedOperator& facts = prepared_.operators[o];
      std::int64_t temporary = 0;
      for (int v : facts.adjoints_made) now.working += sizes_[at(v)];
      for (int v : facts.adjoints_added) temporary += sizes_[at(v)];
      const std::int64_t own = weight_gradients(op);
      UnitPeak peak = now;
      peak.working += temporary;
      peak.gathered = gathered_inputs(op);
      peak.weight_gradient = held_gradients + own;
      if (op.kind == OpKind::loss) peak.loss = workspace(op);
      if (peak.total() > out.backward.total()) out.backward = peak;
      const bool held = job_.profile.gradient_hold != GradientHold::op;
      if (held || scatters(op)) held_gradients += own;
      for (int v : facts.adjoints_dead) now.working -= sizes_[at(v)];
      for (int v : plan_.done[o]) {
        const bool was_kept = plan_.is_kept[at(v)];
        (was_kept ? now.kept : now.rebuilt) -= sizes_[at(v)];
      }
    }
  }

  void read_parameters(UnitMemory& out) const {
    for (const LocalParameter& parameter : local_.parameters) {
      if ((parameter.rests_in_part | parameter.materialized) != 0) {
        out.gathered_parameters += in_bytes(bytes_of(parameter.elements, job_.precision.gather));
        out.keep = std::max(out.keep, parameter.keep);
        keep_parts(parameter, out);
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
  void keep_parts(const LocalParameter& parameter, UnitMemory& out) const {
    const AxisMask step = parameter.keep == Keep::step ? 0 : parameter.kept_step;
    const AxisMask backward = parameter.keep == Keep::none ? parameter.kept & ~step : 0;
    if (step != 0) out.kept_parts_step += part_bytes(parameter, step);
    if (backward != 0) out.kept_parts += part_bytes(parameter, step | backward);
  }

  /// Bytes of a device's part of a parameter that is whole along the axes `kept`.
  std::int64_t part_bytes(const LocalParameter& parameter, AxisMask kept) const {
    const AxisMask divided = gathered_axes(parameter) & ~kept;
    return in_bytes(
        bytes_of(largest_part(job_.placement, parameter.elements, divided), job_.precision.gather));
  }

  const Layout& layout_;
  const Job& job_;
  const LocalUnit& local_;
  const UnitKind& kind_;
  const PreparedKind& prepared_;
  const SavedPlan& plan_;
  std::vector<std::int64_t> sizes_;
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
  return UnitWalk(layout, unit, recomputed).walk();
}

}  // namespace placet
