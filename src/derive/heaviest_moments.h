// The moments of interleaved pipelines at which other micro-batches keep most, without a list of
// all moments (docs/theory.md §3.4). Inside of memory.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/moments.h"

namespace placet {

/// Whether values and gradients of a schedule are used in the order in which they arrive, so that
/// none waits: interleaved over a loop of more than two devices, of at most 64 chunks each.
bool arrives_in_turn(const Schedule& schedule, std::int64_t degree);

/// Of each kind of work and chunk of a device, and each set of other chunks that hold something,
/// the first moment at which micro-batches beside the running one keep most, in the order of work.
/// `kept`: bytes that one micro-batch keeps, by chunk. O(chunks) stretches of work are looked at,
/// however many micro-batches there are. Throws InputError where bytes pass 2^63.
/// REQUIRES: arrives_in_turn. Case: degree 4, 2 chunks, m = 4, device 3: forward through chunk 0
/// four times, then forward and back through chunk 1 in turn: each forward of chunk 1 runs beside
/// {4, 0}, which is 4 kept[0] bytes.
std::vector<WorkMoment> heaviest_moments(const Schedule& schedule, std::int64_t degree,
                                         std::int64_t device, std::int64_t micro_batches,
                                         const std::vector<std::int64_t>& kept);

}  // namespace placet
