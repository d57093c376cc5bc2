// A verdict with all that is told of what is wrong (docs/theory.md §6.5). Inside of check/.
#pragma once

#include "check/machine.h"
#include "check/suspects.h"

namespace placet {

inline constexpr int kCheckedSteps = 2;

/// What every verdict on a program says, before anything is found.
Verdict verdict_on(const Program& program);

void add_labels(const Machine& machine, Verdict& verdict);

/// Runs the steps, up to the first that ends wrong, and tells what is wrong where and why.
/// `forgets`: contents are forgotten at the end of a step as Machine::Options tells.
/// REQUIRES: a well-formed program, which the suspects point into.
FullVerdict find_all(const Program& program, bool forgets);

}  // namespace placet
