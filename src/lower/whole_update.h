// The update of a matrix that tensor axes cut: what it is stepped along comes together, is
// orthogonalised whole, and is cut again (docs/theory.md §6.4). Inside of lower/.
#pragma once

#include <cstddef>

#include "lower/unit_passes.h"

namespace placet {

/// Axes that cut a piece of a parameter and whose placement puts the optimizer's state together.
AxisList put_together(const Lowering& in, const ParameterPlan& plan, std::size_t piece);

/// Writes the update `whole`, of the piece alone, with the matrix put together along these axes.
void write_whole_update(Lowering& in, const ParameterPlan& plan, std::size_t piece,
                        const Instruction& whole, const AxisList& axes);

}  // namespace placet
