// What products take in a format of their own, as values that a unit stores beside its own
// (docs/theory.md §3.2, §3.11): copies of inputs, and casts of weights.
#pragma once

#include "derive/prepared.h"

namespace placet {

/// Notes of each product whether it takes copies, and when the first and the last of a value's
/// readers makes and leaves them; then the same of weights.
void read_copies(const Job& job, const UnitKind& kind, PreparedKind& out);

}  // namespace placet
