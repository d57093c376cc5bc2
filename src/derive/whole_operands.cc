#include "derive/whole_operands.h"

#include <algorithm>

#include "derive/partial_sums.h"
#include "derive/unit_traffic.h"
#include "units/at.h"

namespace placet {
namespace {

/// Indices in which a tensor cut with `indices` divides an operator's matrices.
IndexSet cut_in_weights(const UnitKind& kind, const Operator& op, IndexSet indices) {
  IndexSet cut = 0;
  for (int p : op.parameters) {
    const Parameter& parameter = kind.parameters[at(p)];
    const int d = cut_dim(parameter, indices);
    if (d < 0) continue;
    const bool segmented = d == segmented_dim(parameter);
    cut |= segmented ? indices_in(parameter.segments) : bit_of(parameter.dims[at(d)].index);
  }
  return cut;
}

/// The axes of tensor cuts of which which(indices) holds.
template <class Which>
AxisMask tensor_axes_where(const PlacedOperator& placed, Which which) {
  AxisMask axes = 0;
  for (std::size_t a = 0; a < placed.placement.axes.size(); ++a) {
    const AxisPlacement& axis = placed.placement.axes[a];
    const How& how = how_of(axis, placed.classes, std::nullopt);
    if (how.cut == Cut::tensor && axis.degree > 1 && which(how.tensor_indices)) {
      axes |= axis_bit(static_cast<int>(a));
    }
  }
  return axes;
}

IndexSet dims_of_value(const UnitKind& kind, int v) { return indices_in(kind.values[at(v)].dims); }

}  // namespace

int cut_dim(const Parameter& parameter, IndexSet indices) {
  const int segmented = segmented_dim(parameter);
  const int last = static_cast<int>(parameter.dims.size()) - 1;
  for (int i = 0; i <= last; ++i) {
    const int d = parameter.inputs_first ? last - i : i;
    const bool cut = d == segmented ? std::ranges::all_of(parameter.segments,
                                                          [&](const Dim& segment) {
                                                            return contains(indices, segment.index);
                                                          })
                                    : contains(indices, parameter.dims[at(d)].index);
    if (cut) return d;
  }
  return -1;
}

IndexSet summed_in_part(const UnitKind& kind, const Operator& op, int output, IndexSet indices) {
  const IndexSet summed = contracted_indices(kind, op, output) & indices;
  return summed == 0 ? summed : summed & cut_in_weights(kind, op, indices);
}

bool cuts_both_sides(const Placement& placement) {
  const auto both = [](const How& how) {
    const IndexSet others = how.tensor_indices & ~bit_of(Index::hidden);
    return how.cut == Cut::tensor && contains(how.tensor_indices, Index::hidden) && others != 0;
  };
  return std::ranges::any_of(placement.axes, [&](const AxisPlacement& axis) {
    return both(axis.how) ||
           std::ranges::any_of(axis.overrides, [&](const Override& one) { return both(one.how); });
  });
}

AxisMask axes_of_whole_input(const PlacedOperator& placed, int input) {
  if (placed.op.kind == OpKind::embedding || placed.op.outputs.empty()) return 0;
  return tensor_axes_where(placed, [&](IndexSet indices) {
    const int output = placed.op.outputs.front();
    const IndexSet summed = contracted_indices(placed.kind, placed.op, output) & indices;
    const IndexSet whole = summed & ~cut_in_weights(placed.kind, placed.op, indices);
    return (whole & dims_of_value(placed.kind, input)) != 0;
  });
}

AxisMask axes_of_whole_output(const PlacedOperator& placed, int output) {
  return tensor_axes_where(placed, [&](IndexSet indices) {
    const bool summed = summed_in_part(placed.kind, placed.op, output, indices) != 0;
    return summed && (dims_of_value(placed.kind, output) & indices) != 0;
  });
}

}  // namespace placet
