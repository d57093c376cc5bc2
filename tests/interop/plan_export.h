// What a search offers for an engine, written in the engine's own dialect.
#pragma once

#include <string>
#include <vector>

namespace placet {

/// A model on a cluster, with tokens per sample and samples per step.
struct Trained {
  std::string model, cluster, sequence, batch;
};

/// Searches for plans of each engine that has a dialect of its own, and expects all of the answer
/// and its front to be sayable there. Gives how many plans there were.
std::size_t expect_plans_are_sayable(const std::vector<Trained>& trained);

}  // namespace placet
