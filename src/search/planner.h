// The planner: the best plans of a space, with the proof that there is no better one, and why they
// are what they are (docs/theory.md §9). Pure: clocks and signals come in as functions.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "search/plan_tree.h"

namespace placet {

/// What was searched and how.
struct PlanCounts {
  std::int64_t space = 0;  // plans that no rule excludes as far as was asked: visited + bounded
  std::int64_t visited = 0;
  std::int64_t bounded = 0;
  std::map<std::string, std::int64_t> rejected;  // by rule
  bool exact = true;
};

struct PlanProgress {
  PlanCounts counts;
  std::optional<FoundPlan> best;
};

struct PlanOptions {
  PlanGoal goal = PlanGoal::time;
  std::size_t top = 5;
  double cutoff = kNoBound;  // only plans up to this value
  /// Known costs, of a space that differs in sizes of memory only; none: worked out anew.
  std::shared_ptr<PlanCosts> costs{};
  std::function<bool()> stopped;
  std::function<void(const PlanProgress&)> progress;
};

struct PlanResult {
  PlanCounts counts;
  std::vector<FoundPlan> plans;  // the best of each placement, the best first
};

/// The best plans.
PlanResult find_plans(const PlanSpace& space, const PlanOptions& options);

}  // namespace placet
