// Whether buffers have room for what instructions put into them (docs/theory.md §6.5). Inside of
// check/.
#pragma once

#include <vector>

#include "check/machine.h"

namespace placet {

/// Collectives and slices whose buffers do not fit each other: what is put together has another
/// extent than the parts, or other dims differ. Judged by types, on the devices of a group that
/// stands where its class begins along all other axes.
std::vector<Breach> find_misfits(const Program& program);

}  // namespace placet
