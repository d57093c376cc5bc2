// The part of plan.h that says why a program is stuck, and how it ends.
#include <algorithm>

#include "ranks/plan.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::ranks {

void Planner::stop(int rank, const std::string& problem) {
  if (plan_.stuck) return;
  const DeviceClass& device_class = program_.classes[at(plan_.classes[at(rank)])];
  std::string text = "step " + std::to_string(step_ + 1) + ", rank " + std::to_string(rank) +
                     " ('" + device_class.name + "')";
  if (at(rank) < ranks_.size()) {
    if (const ListedInstruction* one = current(rank)) {
      text +=
          ", instruction " + std::to_string(state(rank).next) + " (" + describe(*one->what) + ")";
    }
  }
  plan_.stuck = text + ": " + problem;
}

/// A rank that has not come to its end waits for one that never comes.
void Planner::check_blocked() {
  for (int r = 0; r < mesh_.ranks(); ++r) {
    const ListedInstruction* one = current(r);
    if (one == nullptr) continue;
    if (one->what->kind == InstructionKind::receive) {
      stop(r, "waits for a message that is never sent");
      continue;
    }
    const std::vector<int>* group = mesh_.group(r, *one->what);
    ensure(group != nullptr, "a group that a rank waits for exists");
    for (int other : *group) {
      if (arrived(other, *one->what)) continue;
      const ListedInstruction* there = current(other);
      stop(r, "waits for rank " + std::to_string(other) + ", which " +
                  (there == nullptr ? "is at the end of the step"
                                    : "is at instruction " + std::to_string(state(other).next) +
                                          " (" + describe(*there->what) + ")"));
    }
  }
}

/// What must hold when the step ends: every message has come, every result can be read.
void Planner::check_end() {
  for (const auto& [ranks, waiting] : messages_) {
    if (waiting.empty()) continue;
    stop(ranks.first, "a message to rank " + std::to_string(ranks.second) + " is never received");
  }
  for (const Region& region : plan_.checks) {
    const std::string problem = state(region.rank).buffers.reads(region.buffer);
    if (!problem.empty()) stop(region.rank, "when the step ends, " + problem);
  }
}

}  // namespace placet::ranks
