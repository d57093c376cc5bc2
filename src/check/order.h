// Whether the order of execution is settled where it matters (docs/theory.md §6.6): the queues of a
// device run beside each other, and only what is recorded and waited for orders them. Inside of
// check/.
//
// Every access to a buffer has a time on its queue. A queue knows up to which time of every other
// queue all is done: its own instructions one by one, others' by waiting. An access is safe if its
// queue knows that what it must follow is done:
//   read   after the last write;
//   write  after the last write and all reads since;
//   free, alloc  as a write.
// Which communications meet is settled by the order in which devices are told to begin them, on
// whatever queues: what is judged here is the buffers.
#pragma once

#include <vector>

#include "check/machine.h"

namespace placet {

/// The first accesses of each class that could come too early; at most a few.
std::vector<Breach> find_races(const Program& program);

}  // namespace placet
