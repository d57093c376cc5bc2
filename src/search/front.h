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

/// How many plans, and by which part of its memory each must be smaller than the one before; 0: by
/// anything.
struct FrontRequest {
  std::size_t most = 1;
  double step = 0.02;
};

/// From `fastest` on. Each is the best plan, by time and then by memory, among all that need so
/// much less memory than the one before: no plan of the space is as good in time, memory and cost
/// and better in one. With step 0 these are all such plans, of equal ones the first.
/// REQUIRES: `fastest` is the best plan of the space.
PlanFront front_of(const PlanSpace& space, const FoundPlan& fastest, const PlanOptions& options,
                   const FrontRequest& request);

}  // namespace placet
