// Trouble of one rank while it runs, to see how the others end: `--fault kill(rank=2)`. Faults of
// the program itself are those of program/fault.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace placet {

struct RankFault {
  /// kill: its process is killed. stall: it stops. fail: it gives up with a message. corrupt: a bit
  /// of what it sends next is wrong. slow: it rests in the middle of a step.
  enum class Kind : std::uint8_t { kill, stall, fail, corrupt, slow };
  Kind kind = Kind::kill;
  int rank = 0;
  int step = 1;        // from 1; slow: every step
  double seconds = 1;  // slow

  friend bool operator==(const RankFault&, const RankFault&) = default;
};

/// The words of the kinds.
std::vector<std::string> rank_fault_words();

/// kill(rank=2, step=3), slow(rank=0, seconds=0.5). None: it is no fault of a rank. Throws
/// InputError for other keys and values.
std::optional<RankFault> rank_fault_from(const std::string& text);

}  // namespace placet
