// Messages that only an engine has: its profile lists them, with what they carry and over which
// axes.
#include <algorithm>

#include "derive/communication.h"
#include "derive/memory.h"
#include "derive/stage_terms.h"
#include "profile/conditions.h"

namespace placet {
namespace {

/// Axes along which devices of a stage update different elements of some tensor.
AxisMask owner_axes(const Layout& layout) {
  AxisMask mask = 0;
  for (const LocalUnit& unit : layout.units) {
    for (const LocalParameter& parameter : unit.parameters) {
      if (parameter.trainable) mask |= parameter.cut | parameter.owned;
    }
  }
  return mask;
}

/// Whether an axis belongs to the message's group, owners left aside.
bool is_listed(const AxisPlacement& axis, const EngineMessage& message) {
  const Cut experts = how_of(axis, bit_of(TensorClass::experts), std::nullopt).cut;
  const bool repeats = axis.how.cut == Cut::batch && axis.how.modes.optimizer == Mode::replicated;
  const bool divided = experts == Cut::expert || experts == Cut::tensor;
  if (message.over_all || (message.over_instance && !repeats)) return true;
  if (message.over_experts && divided) return true;
  if (message.over_cut_experts && experts == Cut::tensor) return true;
  return std::ranges::any_of(message.over, [&](Cut cut) {
    return cut == Cut::expert ? experts == Cut::expert : axis.how.cut == cut;
  });
}

AxisMask axes_with(const Layout& layout, const EngineMessage& message) {
  const Placement& placement = layout.job->placement;
  const AxisMask owners =
      message.over_owners || message.over_data_owners ? owner_axes(layout) : AxisMask{0};
  AxisMask mask = message.over_owners ? owners : AxisMask{0};
  for (std::size_t a = 0; a < placement.axes.size(); ++a) {
    const AxisPlacement& axis = placement.axes[a];
    const AxisMask bit = axis_bit(static_cast<int>(a));
    const bool of_data = message.over_data_owners && axis.how.cut != Cut::tensor;
    if (is_listed(axis, message) || (of_data && (owners & bit) != 0)) mask |= bit;
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
    CommunicationTerm term =
        term_of(message, axes, bytes_of(elements, message.dtype), pair ? 2 : whole);
    term.count = count;
    term.source = message.source;
    terms.push_back(term);
  }
}

}  // namespace placet
