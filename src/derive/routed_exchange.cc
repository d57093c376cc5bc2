#include "derive/routed_exchange.h"

#include <algorithm>

#include "derive/unit_sizes.h"
#include "units/at.h"
#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

bool exchanges(TokenDispatch dispatch) {
  return dispatch == TokenDispatch::exchange || dispatch == TokenDispatch::exchange_once;
}

/// What comes back to the devices of the tokens: what a device of experts has of each that it
/// serves, of whatever columns; no more than the device's own tokens, where routing is not even; of
/// experts with so many slots each, all of them.
std::int64_t elements_with_tokens(const UnitView& unit, const RoutedAxes& axes, int v) {
  const std::int64_t served =
      unit.local.values[at(v)] /
      std::max<std::int64_t>(1, degree_of(unit.job.placement, axes.gathered));
  if (unit.job.routing.kind == Routing::Kind::capacity) return served;
  return std::min(served, sent_elements(unit, axes, v));
}

}  // namespace

std::int64_t RoutedExchange::before_forward(const UnitKind& kind, std::size_t o) const {
  if (sent < 0) return 0;
  if (static_cast<int>(o) == sent_to) return with_tokens;
  return kind.operators[o].kind == OpKind::combine ? returned_there : 0;
}

std::int64_t RoutedExchange::before_backward(const UnitKind& kind, std::size_t o) const {
  if (sent < 0) return 0;
  if (static_cast<int>(o) == returned_by) return returned_there;
  return kind.operators[o].kind == OpKind::dispatch ? with_tokens : 0;
}

bool cuts_columns_alone(const How& how) {
  return how.cut == Cut::tensor && how.tensor_indices == bit_of(Index::hidden);
}

RoutedAxes routed_axes(const UnitView& unit) {
  RoutedAxes out;
  const std::vector<Operator>& operators = unit.kind.operators;
  const auto experts = std::ranges::find(operators, OpKind::grouped_linear, &Operator::kind);
  if (experts == operators.end()) return out;
  const ClassSet classes =
      unit.prepared.operators[static_cast<std::size_t>(experts - operators.begin())].classes;
  for (std::size_t a = 0; a < unit.job.placement.axes.size(); ++a) {
    const AxisPlacement& axis = unit.job.placement.axes[a];
    const How& stream = axis.how;
    if (stream.cut == Cut::layer || axis.degree == 1) continue;
    const How& how = how_of(axis, classes, std::nullopt);
    const Cut cut = how.cut;
    if (cuts_columns_alone(how)) continue;
    const bool whole =
        stream.cut == Cut::tensor && stream.modes.activations != Mode::sharded_gather;
    const AxisMask bit = axis_bit(static_cast<int>(a));
    if (whole) {
      out.summed |= bit;
      if (cut != Cut::tensor) out.parted |= bit;
    } else if (cut == Cut::expert) {
      out.exchanged |= bit;
    } else if (cut == Cut::tensor) {
      out.gathered |= bit;
    }
  }
  return out;
}

namespace {

/// Into how many parts axes cut the columns of the stream.
std::int64_t columns_cut(const UnitView& unit) {
  std::int64_t parts = 1;
  for (const AxisPlacement& axis : unit.job.placement.axes) {
    if (cuts_columns_alone(axis.how)) parts *= axis.degree;
  }
  return parts;
}

}  // namespace

std::int64_t sent_elements(const UnitView& unit, const RoutedAxes& axes, int v) {
  std::int64_t elements =
      checked_multiply(unit.layout.residual_tokens, unit.layout.micro_batch, "routed tokens");
  for (const Dim& dim : unit.kind.values[at(v)].dims) {
    if (dim.index == Index::sample || dim.index == Index::token) continue;
    elements = checked_multiply(elements, dim.size, "routed tokens");
    if (dim.index == Index::hidden) elements = largest_share(elements, columns_cut(unit));
  }
  return largest_share(elements, degree_of(unit.job.placement, axes.parted));
}

RoutedExchange routed_exchange(const UnitView& unit) {
  RoutedExchange out;
  if (!exchanges(unit.job.profile.token_dispatch)) return out;
  const std::vector<Operator>& operators = unit.kind.operators;
  const auto sends = std::ranges::find(operators, OpKind::dispatch, &Operator::kind);
  const auto returns = std::ranges::find(operators, OpKind::combine, &Operator::kind);
  if (sends == operators.end() || returns == operators.end()) return out;
  const RoutedAxes axes = routed_axes(unit);
  if ((axes.exchanged | axes.gathered) == 0) return out;
  out.sent = sends->outputs.front();
  out.returned = returns->inputs.front();
  const auto reader = std::ranges::find_if(operators, [&](const Operator& op) {
    return std::ranges::find(op.inputs, out.sent) != op.inputs.end();
  });
  out.sent_to = static_cast<int>(reader - operators.begin());
  out.returned_by = unit.prepared.values[at(out.returned)].producer;
  out.with_tokens =
      bytes_of_value(unit, at(out.returned), elements_with_tokens(unit, axes, out.returned));
  out.returned_there = bytes_of_value(unit, at(out.returned), unit.local.values[at(out.returned)]);
  return out;
}

}  // namespace placet
