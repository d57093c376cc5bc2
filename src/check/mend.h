// The smallest change that makes a wrong program right (docs/theory.md §6.6): one instruction put
// in, taken out, moved or written otherwise.
//
// Where to look follows from the findings: the instructions of their chains, and bodies that are
// alike but for one step. Each candidate is applied and judged; what is told makes the program
// right, and is no guess. Nothing depends on a clock: the work is bounded in instructions.
#pragma once

#include <cstdint>
#include <optional>

#include "check/check.h"

namespace placet {

struct MendSearch {
  Verdict verdict;                // of the program as it is, with the cure
  std::optional<Program> mended;  // after the change; check() accepts it
};

/// Work that all candidates together may make, in instructions executed: about a second on one
/// core.
inline constexpr std::int64_t kMostMendWork = 4'000'000;

/// check(), and the cure of a program that is not right.
/// REQUIRES: a well-formed program.
/// Case: a program in which `all_reduce sum g over dp` was left out before `update w = ...`: that
/// instruction, put before the update.
MendSearch check_and_mend(Program program, std::int64_t most_work = kMostMendWork);

}  // namespace placet
