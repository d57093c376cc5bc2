// What watching a run found, and a number that changes by itself for it to find.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace placet::execute {

/// What was not as it had to be.
struct WatchFinding {
  std::string condition;          // "state consistency", "gradient integrity", "input integrity"
  std::string tensor;             // "g.block.mlp.up_proj.weight[1]"
  std::vector<std::string> axes;  // that it should be equal along, or was sent along
  int rank = 0;
  int step = 1;
  std::string at;       // the instruction that reads it
  std::string problem;  // "is not the sum of what was written for it"

  friend bool operator==(const WatchFinding&, const WatchFinding&) = default;
};

inline constexpr std::size_t kMostWatchFindings = 64;

/// A number that changes by itself, as broken memory would have it: before that operation of that
/// step, counted from 0, one is added to what stands there.
struct Upset {
  int step = 0;
  std::size_t operation = 0;
  std::int64_t address = 0;
};

}  // namespace placet::execute
