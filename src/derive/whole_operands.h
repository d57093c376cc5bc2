// Axes that cut both sides of a matrix (docs/theory.md §4.5): a tensor cut divides one dim of it,
// so that an operand which is cut in the other one comes together for the product. Inside of
// derive.
#pragma once

#include "derive/layout.h"

namespace placet {

/// The dim of a tensor that a tensor cut with these indices divides, the first that has one of
/// them, of a matrix kept as [in, out] the last; -1: nothing to cut. A dim of segments is divided
/// where all of them are.
int cut_dim(const Parameter& parameter, IndexSet indices);

/// Of the indices that an operator sums over for an output, those of which a tensor cut with
/// `indices` leaves each device a part: its matrix is cut there. Case: y = W x with W
/// [ffn, hidden], cut in `hidden`: {hidden}; cut in `ffn` and `hidden`, of which W is cut in the
/// first: {}.
IndexSet summed_in_part(const UnitKind& kind, const Operator& op, int output, IndexSet indices);

/// Whether some tensor axis cuts the columns of the residual stream and other indices beside.
bool cuts_both_sides(const Placement& placement);

/// One operator of a unit, as placements see it.
struct PlacedOperator {
  const Placement& placement;
  const UnitKind& kind;
  const Operator& op;
  ClassSet classes = 0;
};

/// Axes that cut an input in an index over which the operator sums although its matrix is whole in
/// it: the input comes together along them.
AxisMask axes_of_whole_input(const PlacedOperator& placed, int input);

/// Axes along which an output is a partial sum of what each device has a part of: it is made whole
/// first, then summed and scattered.
AxisMask axes_of_whole_output(const PlacedOperator& placed, int output);

}  // namespace placet
