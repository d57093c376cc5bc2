// Whether buffers have room for what instructions put into them (docs/theory.md §6.5). Inside of
// check/.
#pragma once

#include <vector>

#include "check/machine.h"

namespace placet {

/// Collectives and slices whose buffers do not fit each other: what is put together has another
/// extent than the parts, or other dims differ. Judged by types, on all groups whose parts may have
/// other lengths; past 4096 of these on those at the ends of each axis.
std::vector<Breach> find_misfits(const Program& program);

}  // namespace placet
