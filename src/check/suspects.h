// A verdict with the instructions behind it: what a search for a mending change begins with
// (docs/theory.md §6.6). Inside of check/.
#pragma once

#include <memory>
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
  bool comes_late = false;  // or too early: not its values are wrong, but its place
};

struct Judged {
  Verdict verdict;
  std::vector<Suspect> suspects;  // what is nearest to the cause first, each instruction once
};

/// REQUIRES: a well-formed program, which the suspects point into.
Judged judge(const Program& program);

/// Judges well-formed programs that differ from one in their steps only: what the reference
/// computes is worked out once, and so is what equal instructions make of equal contents. It ends
/// at the first thing that is wrong, and says no more.
class Judge {
 public:
  /// REQUIRES: the program outlives the judge.
  explicit Judge(const Program& program);
  ~Judge();
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  /// Whether the verdict is good.
  bool is_right(const Program& program);

 private:
  struct Known;
  std::unique_ptr<Known> known_;
};

}  // namespace placet
