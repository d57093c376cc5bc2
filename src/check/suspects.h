// A verdict with the instructions behind it: what a search for a mending change begins with
// (docs/theory.md §6.6). Inside of check/.
#pragma once

#include <optional>
#include <vector>

#include "check/check.h"
#include "units/rational.h"

namespace placet {

/// An instruction that a finding points at, and what is known of the fault there.
struct Suspect {
  const Instruction* instruction = nullptr;  // of the program that was judged
  std::optional<Rational> scale;             // how many times too large what it makes is
  AxisList missing;                          // of the mesh, along which it is not summed
};

struct Judged {
  Verdict verdict;
  std::vector<Suspect> suspects;  // what is nearest to the cause first, each instruction once
};

/// REQUIRES: a well-formed program, which the suspects point into.
Judged judge(const Program& program);

}  // namespace placet
