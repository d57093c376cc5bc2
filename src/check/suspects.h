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

struct FullVerdict {
  Verdict verdict;
  std::vector<Suspect> suspects;  // what is nearest to the cause first, each instruction once
};

/// The verdict with all that is told of what is wrong.
/// REQUIRES: a well-formed program, which the suspects point into.
FullVerdict judge_in_full(const Program& program);

/// Judges a well-formed program, and others that differ from it in their steps only: what the
/// reference computes is worked out once, and so is what equal instructions of the others make of
/// equal contents. It ends at the first thing that is wrong, and says no more.
class Judge {
 public:
  /// REQUIRES: the program outlives the judge.
  explicit Judge(const Program& program);
  ~Judge();
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  /// The verdict on the program itself; nothing: it is not good.
  std::optional<Verdict> good_verdict();
  /// Whether the verdict on another one is good.
  bool is_right(const Program& program);

 private:
  struct Known;
  std::unique_ptr<Known> known_;
};

}  // namespace placet
