// What a rank did from one moment to another.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace placet::execute {

struct RanSpan {
  std::string name;  // "compute 'mlp.up'"
  std::string phase;
  std::vector<std::string> axes;  // of collectives
  bool is_message = false;        // data went between ranks
  int rank = 0;
  int step = 1;
  double begin = 0;  // seconds since the run began
  double seconds = 0;
};

inline constexpr std::size_t kMostSpans = 200'000;

}  // namespace placet::execute
