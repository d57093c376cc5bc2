#include "search/planner.h"

namespace placet {
namespace {

PlanCounts counts_of(const BestFound<FoundPlan>& found) {
  return {.space = found.visited + found.bounded,
          .visited = found.visited,
          .bounded = found.bounded,
          .rejected = found.rejected,
          .exact = found.exact};
}

}  // namespace

PlanResult find_plans(const PlanSpace& space, const PlanOptions& options) {
  const PlanTree tree(space, options.goal, options.costs);
  BestFirstOptions<FoundPlan> how{
      .top = options.top, .cutoff = options.cutoff, .stopped = options.stopped};
  if (options.progress) {
    how.progress = [&](const BestFound<FoundPlan>& found) {
      PlanProgress progress{.counts = counts_of(found), .best = {}};
      if (!found.best.empty()) progress.best = found.best.front();
      options.progress(progress);
    };
  }
  BestFound<FoundPlan> found = BestFirst<PlanTree>(tree, std::move(how)).run(tree.roots());
  return {.counts = counts_of(found), .plans = std::move(found.best)};
}

}  // namespace placet
