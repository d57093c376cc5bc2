// Messages that only an engine has: its profile lists them, with what they carry and over which
// axes.
#include <algorithm>

#include "derive/memory.h"
#include "derive/stage_terms.h"
#include "profile/conditions.h"

namespace placet {
namespace {

/// Axes along which devices update different elements of some tensor.
AxisMask owner_axes(const Layout& layout) {
  AxisMask mask = layout.layer_axes;
  for (const LocalUnit& unit : layout.units) {
    for (const LocalParameter& parameter : unit.parameters) {
      if (parameter.trainable) mask |= parameter.cut | parameter.owned;
    }
  }
  return mask;
}

AxisMask axes_with(const Layout& layout, const EngineMessage& message) {
  const Placement& placement = layout.job->placement;
  if (message.over_owners) return owner_axes(layout);
  AxisMask mask = 0;
  for (std::size_t a = 0; a < placement.axes.size(); ++a) {
    const AxisPlacement& axis = placement.axes[a];
    const Cut experts = how_of(axis, bit_of(TensorClass::experts), std::nullopt).cut;
    const bool listed = std::ranges::any_of(message.over, [&](Cut cut) {
      return cut == Cut::expert ? experts == Cut::expert : axis.how.cut == cut;
    });
    const bool around =
        (message.over_experts && (experts == Cut::expert || experts == Cut::tensor)) ||
        (message.over_cut_experts && experts == Cut::tensor);
    if (message.over_all || listed || around) mask |= axis_bit(static_cast<int>(a));
  }
  return mask;
}

}  // namespace

void write_engine_messages(const Layout& layout, const Stage& stage,
                           std::vector<CommunicationTerm>& terms) {
  for (const EngineMessage& message : layout.job->profile.messages) {
    if (!all_hold(message.when, layout, stage)) continue;
    const AxisMask axes = axes_with(layout, message);
    const std::int64_t whole = degree_of(layout.job->placement, axes);
    const bool pair = message.collective == Collective::send_recv;
    const std::int64_t elements = evaluate(message.payload_elements, layout, stage);
    const std::int64_t count = evaluate(message.count, layout, stage);
    if (whole <= 1 || elements <= 0 || count <= 0) continue;
    terms.push_back({.axes = axes,
                     .collective = message.collective,
                     .op = message.op,
                     .state = message.state,
                     .what = message.what,
                     .dtype = message.dtype,
                     .phase = message.phase,
                     .payload = bytes_of(elements, message.dtype),
                     .count = count,
                     .group = pair ? 2 : whole,
                     .source = message.source});
  }
}

}  // namespace placet
