// What to change first in a job that is slower than it need be: changes of one thing each, derived
// anew, and what they are worth (docs/theory.md §7.8).
#pragma once

#include <vector>

#include "derive/time.h"
#include "placement/finding.h"
#include "simulate/simulation.h"

namespace placet {

struct AdviceChoice {
  double least_gain = 0.01;  // of the throughput; less is not worth a word
  std::size_t most = 3;      // findings
};

/// The changes that raise tokens per second most, the best first. Each names its gain as the
/// estimate gives it, and fits and breaks no rule that the job does not break. Tried, where the
/// step spends time on what they would save: tensor axes innermost (messages over slow links), a
/// smaller micro-batch or a larger global batch (bubbles), gathered parameters kept over the step
/// (gathers in each micro-batch), a larger micro-batch (host), less recomputation, a block moved
/// from the stage that computes longest.
std::vector<Finding> advice_on(const Job& job, const TimeDerivation& time,
                               const Simulation& simulated, const AdviceChoice& choice);

}  // namespace placet
