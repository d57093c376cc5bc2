// From two values that differ to what is wrong: the deepest place where they part
// (docs/theory.md §6.6). Inside of check/.
#pragma once

#include "check/check.h"
#include "check/machine.h"

namespace placet {

/// Condition, place, expectation and difference of a finding about a tensor that should be
/// `expected`.
CheckFinding explain(Nodes& nodes, const Machine& machine, const Program& program, NodeId expected,
                     const Tensor& found);

}  // namespace placet
