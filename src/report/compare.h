// Placements of one model side by side, and the answer: which fit, which sends least.
#pragma once

#include <string>
#include <vector>

#include "report/judged.h"
#include "report/style.h"

namespace placet {

struct Ranking {
  /// Position of the best one: of those that are good (else of all), the fastest, where all have a
  /// time; else the one that sends least; of equals the one with the lowest peak, then the first.
  std::size_t best = 0;
  std::size_t least_memory = 0;
  std::string answer;  // two or three sentences
};

/// REQUIRES: at least one.
Ranking rank(const std::vector<Judged>& all);

/// What a placement is called in the answer: "A", "B", ... in the order given.
std::string label_of(std::size_t position);

/// What a device of the fullest class must hold, which is what is judged.
Bytes needed_of(const Derivation& derivation);

/// The table and the answer. Columns are placements; more than fit the width are put below.
std::string comparison_text(const std::vector<Judged>& all, const TextStyle& style);

}  // namespace placet
