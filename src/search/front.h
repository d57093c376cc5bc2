// Plans that trade time for memory: each the fastest of those that need less memory than the one
// before (docs/theory.md §9.5).
#pragma once

#include <vector>

#include "search/planner.h"

namespace placet {

struct PlanFront {
  std::vector<FoundPlan> plans;  // from the fastest to the smallest
  bool whole = false;            // nothing is smaller than the last one by a step or more
  bool exact = true;             // no search was stopped
};

/// From `fastest` on, at most so many. Each is the best plan, by time and then by memory, among all
/// that need less memory than the one before by a fiftieth or more: no plan of the space is as good
/// in time, memory and cost and better in one. REQUIRES: `fastest` is the best plan of the space.
PlanFront front_of(const PlanSpace& space, const FoundPlan& fastest, const PlanOptions& options,
                   std::size_t most);

}  // namespace placet
