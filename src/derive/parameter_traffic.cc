// Rules 1 to 3 of docs/theory.md §4, parameter by parameter: use of parameters here, gradients and
// update in files of their own.
#include <algorithm>

#include "derive/moved_states.h"
#include "derive/parameter_messages.h"
#include "derive/quantised_traffic.h"
#include "derive/update_inputs.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

/// The linear operator that a parameter is the matrix of; none: it is no such matrix.
const Operator* linear_of(const UnitKind& kind, std::size_t p) {
  const auto op = std::ranges::find_if(kind.operators, [&](const Operator& o) {
    return o.kind == OpKind::linear && !o.parameters.empty() &&
           o.parameters.front() == static_cast<int>(p);
  });
  return op == kind.operators.end() ? nullptr : &*op;
}

/// Whether the engine keeps a parameter and the one before it in one tensor.
bool joins_before(const Profile& profile, const UnitKind& kind, std::size_t p) {
  if (!profile.joins_inputs || p == 0) return false;
  const Operator* own = linear_of(kind, p);
  const Operator* before = linear_of(kind, p - 1);
  return own != nullptr && before != nullptr && own->module == before->module &&
         own->inputs.front() == before->inputs.front();
}

/// Gathers for use.
class UseTraffic {
 public:
  explicit UseTraffic(ParameterMessages& out) : out_(out) {}

  /// Rests in part, used whole: gathered in forward and again in backward, unless kept.
  void write(const Parameter& declared, const LocalParameter& parameter) {
    const AxisMask axes = gathered_axes(parameter);
    if (axes == 0 && used_from_host(parameter) == Rational(0)) return;
    // Where neither the unit nor anything before it is trained, backward has no use of it.
    const bool stays = stays_to_backward(out_.layout.plan.gathers, out_.kind.role) ||
                       !out_.layout.prepared->kinds[at(out_.unit.kind)].gradients.backward;
    ParameterMove move{.what = "gathered parameters",
                       .dtype = gather_dtype(declared),
                       .phase = Phase::forward,
                       .grain = grain(),
                       .sharded = true,
                       .constants = &declared.constants};
    const AxisMask once = axes & parameter.kept_step;
    const AxisMask again = stays ? 0 : axes & ~parameter.kept;
    if (once != 0) gather(parameter, move, once, axes & ~once);
    move.per_micro_batch = true;
    if (once != axes || axes == 0) gather(parameter, move, axes & ~once, 0);
    move.phase = Phase::backward;
    const bool rereads = axes == 0 && !stays && parameter.keep == Keep::none;
    if (again != 0 || rereads) gather(parameter, move, again, 0);
  }

 private:
  MessageGrain grain() const {
    const bool together = out_.layout.plan.gathers.bucket_elements > 0;
    return together ? MessageGrain::bucket : out_.profile.gather_grain;
  }

  /// The part of what a parameter is made from for use, its own bytes or the master's, that is in
  /// host memory.
  static Rational used_from_host(const LocalParameter& parameter) {
    return parameter.on_host[parameter.materialized != 0 ? 1 : 0];
  }

  Dtype gather_dtype(const Parameter& declared) const {
    return declared.dtype ? *declared.dtype : out_.job.precision.gather;
  }

  /// Gathers over `axes` what stays divided over `later`; the own part comes from host memory first
  /// where it rests there.
  void gather(const LocalParameter& parameter, ParameterMove move, AxisMask axes, AxisMask later) {
    if (used_from_host(parameter) != Rational(0)) {
      ParameterMove copy = move;
      copy.collective = Collective::host_copy;
      copy.what = "parameters from host";
      copy.nvme = parameter.on_nvme[parameter.materialized != 0 ? 1 : 0];
      copy.grain = MessageGrain::unit;
      copy.sharded = false;
      const std::int64_t part = parameter.rest[parameter.materialized != 0 ? 1 : 0];
      out_.add(copy, 0, elements_moved(part, used_from_host(parameter)), 1);
    }
    const std::int64_t whole =
        own_part(out_.layout, parameter, out_.padded(parameter, axes | later), later);
    if (out_.profile.quantised_gathers) return gather_quantised(move, axes, whole);
    out_.add(move, axes, whole);
  }

  /// Each device quantises its part; the constants of its blocks are gathered beside it.
  void gather_quantised(ParameterMove move, AxisMask axes, std::int64_t whole) {
    const Quantised& format = *out_.profile.quantised_gathers;
    const std::int64_t parts = degree_of(out_.job.placement, axes);
    move.dtype = format.dtype;
    move.constants = nullptr;
    out_.add(move, axes, whole);
    move.dtype = format.constants;
    move.what = "constants of gathered parameters";
    out_.add(move, axes,
             checked_multiply(equal_blocks(whole / parts, format.block), parts, "blocks"));
  }

  ParameterMessages& out_;
};

}  // namespace

void write_use(ParameterMessages& out, const Parameter& declared, const LocalParameter& parameter) {
  UseTraffic(out).write(declared, parameter);
}

std::vector<UnitTerm> parameter_traffic(const Layout& layout, int unit, const OtherUses& uses) {
  ParameterMessages out(layout, unit);
  for (std::size_t p = 0; p < out.unit.parameters.size(); ++p) {
    const LocalParameter& parameter = out.unit.parameters[p];
    const Parameter& declared = out.kind.parameters[p];
    if (!joins_before(out.profile, out.kind, p)) out.begin_tensor();
    const bool carried = p < uses.here.size() && uses.here[p];
    // What stays gathered over the step is there for all its uses, and what the ends share is once
    // in the unit that they make together.
    const bool in_ends = out.layout.plan.gathers.joins_ends && is_end(out.kind.role);
    const bool there = carried && (parameter.keep == Keep::step || in_ends);
    if (!there) write_use(out, declared, parameter);
    if (!parameter.trainable || carried) continue;
    const bool hosted_elsewhere =
        p < uses.elsewhere.size() && uses.elsewhere[p] &&
        degree_of(out.job.placement, reduced_with_hosts(out.layout, parameter)) > 1;
    write_reduction(out, parameter, hosted_elsewhere);
    write_update(out, declared, parameter);
  }
  return out.take();
}

std::vector<UnitTerm> host_traffic(const Layout& layout, int unit) {
  ParameterMessages out(layout, unit);
  out.only_host_copies();
  for (std::size_t p = 0; p < out.unit.parameters.size(); ++p) {
    const LocalParameter& parameter = out.unit.parameters[p];
    if (!is_moved(parameter)) continue;
    write_use(out, out.kind.parameters[p], parameter);
    if (parameter.trainable) write_update(out, out.kind.parameters[p], parameter);
  }
  return out.take();
}

}  // namespace placet
