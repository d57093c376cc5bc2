// What an operator's backward takes, and its two parts where the schedule splits it: gradients of
// values, and gradients of weights, for which saved values and incoming gradients stay
// (docs/theory.md §3.4). Inside of prepared.cc.
#pragma once

#include <cstddef>
#include <vector>

#include "derive/prepared.h"

namespace placet {

/// An output that is the same storage as the operator's first input.
bool writes_in_place(OpKind kind);

/// The output whose gradient input `i` takes as its own; -1: none. Of a residual sum the branch
/// (its last input) takes it, while the stream gets a buffer of its own where the branch's gradient
/// flows back into it; or all inputs do, where `all_share`.
int gradient_source(const Operator& op, std::size_t i, bool all_share);

/// Slots that an operator keeps; none if backward has no work in it. A contraction with frozen
/// weights keeps no input: only the weights' own gradient needs it.
std::vector<int> saved_by(const UnitKind& kind, const PreparedKind& prepared, std::size_t number,
                          const SavedTable& table);

/// Fills `parts` of the operators.
void read_parts(const UnitKind& kind, const Profile& profile, PreparedKind& out);

/// Notes what gradients of weights are made from, and after whose weights' part it goes.
void note_weights(const UnitKind& kind, const PreparedKind& prepared, const SavedTable& table,
                  SavedPlan& plan);

}  // namespace placet
