// How large a program may be to be run with all its ranks in one process.
#pragma once

#include <cstdint>

namespace placet::ranks {

struct RunLimits {
  std::int64_t ranks = 1024;
  double instructions = 4e6;           // over all ranks
  std::int64_t elements = 1LL << 25U;  // over all buffers of all ranks
  double products = 1e9;               // of one step
};

/// Entries of one table of places in a compiled kernel.
inline constexpr double kMostPlaces = 1 << 22U;

}  // namespace placet::ranks
