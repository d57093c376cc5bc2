// What plan answers: the best placements of a model on a cluster, with proofs, neighbours, margins
// and what else was asked of them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "call/job_flags.h"
#include "catalog/catalog.h"
#include "report/plan_sheet.h"
#include "search/plan_space.h"
#include "search/planner.h"

namespace placet {

/// What is asked of a plan; the member names are the flags.
struct PlanRequest {
  JobFlags flags;
  std::string goal = "time";  // time, memory or cost
  std::size_t top = 5;
  std::string fix, require, price, tokens, scale;
  std::size_t front = 0;  // plans of the front; 0: none
  std::optional<double> front_step;
  std::optional<double> goodput;     // part of the time that makes progress; none: all
  std::optional<double> max_memory;  // none: all but what a job that fits leaves free
  bool allow_tight = false;
  bool proofs = true;  // false: none of the plans is proven, which is most of the work
};

/// How a search is watched. `progress` is told in the thread that called; `stopped` is asked there
/// and, while plans are proven, beside it.
struct PlanWatch {
  /// Whether to stop: the answer is the best so far, and says so.
  std::function<bool()> stopped = [] { return false; };
  std::function<void(const PlanProgress&)> progress = {};
};

/// The sheet points into what it was made from.
struct PlannedJob {
  std::shared_ptr<const Job> base;
  std::shared_ptr<const Choices> choices;
  PlanSheet sheet;
};

/// `said`: the request that the flags make. Throws InputError.
PlannedJob planned_of(const Catalog& catalog, PlanRequest request, const JobRequest& said,
                      const PlanWatch& watch);

/// The request of one of its plans: `said` with the plan's placement, micro-batch and
/// recomputation, and the sizes that were assumed.
JobRequest request_of_plan(JobRequest said, const PlanSheet& sheet, const PlanLine& plan);

}  // namespace placet
