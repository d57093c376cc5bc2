// What of a stage's work repeats itself micro-batch after micro-batch (docs/theory.md §6.4). Inside
// of lower/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lower/stages.h"

namespace placet {

/// A gathered parameter that is there for all micro-batches under way: its family, and the unit
/// that owns it.
using SharedWhole = std::pair<int, int>;

/// A piece of work of a stage, with all that stands around it.
struct Turn {
  std::vector<StageMessage> received;  // before it, in order
  std::vector<SharedWhole> begun;      // before it: no micro-batch that needs them is under way
  Work work;
  std::vector<SharedWhole> ended;    // after it: likewise
  std::optional<StageMessage> sent;  // after it

  friend bool operator==(const Turn&, const Turn&) = default;
};

/// Some turns one after the other, `rounds` times, each time for a micro-batch that is `by` later.
struct Rounds {
  std::size_t first = 0;   // of the turns
  std::size_t period = 1;  // turns in one round
  std::int64_t rounds = 1;
  std::int64_t by = 1;  // 1 or -1

  friend bool operator==(const Rounds&, const Rounds&) = default;
};

/// All turns, in their order, as rounds: what repeats itself often enough to be a loop, the longest
/// part first, and single turns. The work is that of the number of turns.
/// Case (the fewest rounds being 2): of f0 f1 f2 b0 f3 b1 f4 b2 b3 b4 three times a forward and a
/// backward, from f2 on; before that two forwards, and behind it two backwards.
std::vector<Rounds> rounds_of(const std::vector<Turn>& turns);

}  // namespace placet
