// Which rules keep a job from having any plan, in the findings' own words (docs/theory.md §9.5).
#pragma once

#include <vector>

#include "placement/finding.h"
#include "search/plan_space.h"

namespace placet {

/// The plan of a space that breaks fewest rules, and what it breaks.
struct Hindrance {
  Plan plan;
  std::vector<Finding> findings;  // errors only
};

/// Of the first plans of each mesh (a micro-batch, a split, a recomputation and an order of each,
/// all words); of equals the first. No findings: one of these keeps all rules, or no mesh keeps the
/// constraints. Case: 12 heads and tp=8 settled: divisibility, axis tp, "12 heads do not divide by
/// 8".
Hindrance least_hindered(const PlanSpace& space);

}  // namespace placet
