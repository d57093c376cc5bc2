// A third count of what a device has alive and sends, by walking every rank of a small mesh and
// adding up its allocations one by one: no closed form, no class, no sharing between loops.
#pragma once

#include <cstdint>
#include <string>

#include "check/tally.h"

namespace placet::testing {

struct Unrolled {
  std::int64_t rest = 0;
  std::int64_t peak = 0;
  std::int64_t host_peak = 0;
  std::int64_t left = 0;  // alive when the step ends
  // Bytes of messages less the rank's own part, in the formats of buffers.
  std::int64_t handed_on = 0, scattered = 0, gathered = 0;
  std::string fault;  // a buffer made twice, or freed without being alive
};

/// The rank at `at`, in the class that it belongs to.
Unrolled unrolled(const Program& program, const ProgramCoordinates& at);

/// Coordinates of all ranks.
std::vector<ProgramCoordinates> all_ranks(const Program& program);

/// The class of a rank; -1: none.
int class_of(const Program& program, const ProgramCoordinates& at);

}  // namespace placet::testing
