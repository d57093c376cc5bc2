// What the parameters of a unit take while it runs: gathered, copied, their gradients.
#include <algorithm>

#include "derive/state_bytes.h"
#include "derive/unit_walk.h"
#include "derive/update_inputs.h"
#include "units/at.h"

namespace placet {
namespace {

/// What is gathered from host memory, or from the master, is first copied: a part of its own.
void count_parts(const UnitView& unit, const Parameter& declared, const LocalParameter& parameter,
                 UnitMemory& out) {
  const AxisMask axes = gathered_axes(parameter);
  const bool copied = parameter.materialized != 0 || parameter.on_host[0] != Rational(0);
  if (!unit.job.profile.parts_stand_apart || !copied || degree_of(unit.job.placement, axes) == 1)
    return;
  const std::int64_t part = own_part(unit.layout, parameter, parameter.elements, axes);
  out.gathered_from += in_bytes(gathered_bytes(unit.job, declared, part));
}

/// Bytes of a device's part of a parameter that is whole along the axes `kept`.
std::int64_t part_bytes(const UnitView& unit, const Parameter& declared,
                        const LocalParameter& parameter, AxisMask kept) {
  const AxisMask divided = gathered_axes(parameter) & ~kept;
  return in_bytes(gathered_bytes(unit.job, declared,
                                 own_part(unit.layout, parameter, parameter.elements, divided)));
}

/// What is gathered over several axes and kept along some of them only goes back to the parts of
/// the others: a copy beside the part that rests.
void keep_parts(const UnitView& unit, const Parameter& declared, const LocalParameter& parameter,
                UnitMemory& out) {
  const AxisMask step = parameter.keep == Keep::step ? 0 : parameter.kept_step;
  const AxisMask backward = parameter.keep == Keep::none ? parameter.kept & ~step : 0;
  if (step != 0) out.kept_parts_step += part_bytes(unit, declared, parameter, step);
  if (backward != 0) out.kept_parts += part_bytes(unit, declared, parameter, step | backward);
}

}  // namespace

bool is_shared_here(const UnitView& unit, const Parameter& parameter) {
  return parameter.tied && unit.layout.stages == 1;
}

void read_parameters(const UnitView& unit, const std::vector<std::int64_t>& sizes,
                     UnitMemory& out) {
  if (!sizes.empty()) out.begins_with = {.working = sizes[0]};
  if (unit.prepared.output >= 0 && unit.prepared.gradients.backward) {
    out.ends_with.working = sizes[at(unit.prepared.output)];
  }
  out.ends_with.kept = out.kept;  // what is in host memory comes in when the parameters are there
  for (std::size_t p = 0; p < unit.local.parameters.size(); ++p) {
    const LocalParameter& parameter = unit.local.parameters[p];
    const Parameter& declared = unit.kind.parameters[p];
    const bool gathers = (parameter.rests_in_part | parameter.materialized) != 0;
    // What stays gathered over the step is there for all its uses.
    if (gathers && is_shared_here(unit, declared) && parameter.keep == Keep::step) {
      out.keep = Keep::step;
    } else if (gathers) {
      out.gathered_parameters += in_bytes(gathered_bytes(unit.job, declared, parameter.elements));
      out.keep = std::max(out.keep, parameter.keep);
      keep_parts(unit, declared, parameter, out);
      count_parts(unit, declared, parameter, out);
    } else if (parameter.on_host[0] != Rational(0)) {
      const std::int64_t copied = elements_moved(parameter.elements, parameter.on_host[0]);
      out.gathered_parameters += in_bytes(gathered_bytes(unit.job, declared, copied));
    }
    if (parameter.trainable) {
      out.weight_gradients += in_bytes(bytes_of(parameter.elements, unit.job.precision.compute));
    }
    if (parameter.trainable && (parameter.scattered_each | parameter.consumed) != 0) {
      out.gradient_whole += in_bytes(bytes_of(parameter.elements, unit.job.precision.compute));
    }
  }
  // A model without operators has no walk: its gradients appear whole, unit by unit.
  if (unit.kind.operators.empty()) out.backward.weight_gradient = out.gradient_whole;
}

}  // namespace placet
