// The buffers of one rank as its step makes and frees them, in real memory: every page is written,
// nothing is computed (docs/theory.md §6.11).
#pragma once

#include <cstdint>

#include "execute/run.h"

namespace placet::execute {

struct Replayed {
  HeldBytes held;  // counted, of that rank
  /// What the process holds more than before, as the system counts it: whole pages of each buffer.
  std::int64_t resident_rest = 0;
  std::int64_t resident_peak = 0;
};

/// REQUIRES: a rank of the program's mesh. Throws InputError where the system gives no memory.
Replayed replay_buffers(const Program& program, int rank);

/// Bytes that a process may still take without pushing others out, by the system, by the group
/// that limits it and by its own limit; -1: the system does not say.
std::int64_t available_memory();

}  // namespace placet::execute
