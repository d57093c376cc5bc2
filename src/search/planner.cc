#include "search/planner.h"

#include <algorithm>

namespace placet {
namespace {

PlanCounts counts_of(const BestFound<FoundPlan>& found) {
  return {.space = found.visited + found.bounded,
          .visited = found.visited,
          .bounded = found.bounded,
          .rejected = found.rejected,
          .exact = found.exact};
}

/// Of those that are behind, as far as they were judged, only such count as may be better than one
/// of `best` in something; these are judged to the end, and left out where they do not fit.
void judge_behind(const PlanTree& tree, const std::vector<FoundPlan>& best,
                  std::vector<FoundPlan>& all) {
  const auto may_dominate = [&](const FoundPlan& plan) {
    return std::ranges::any_of(
        best, [&](const FoundPlan& other) { return dominates(plan.figures, other.figures); });
  };
  std::erase_if(all, [&](FoundPlan& plan) {
    if (!plan.behind) return false;
    if (!may_dominate(plan)) return true;
    EvaluatedPlan judged = tree.evaluate(plan.plan);
    if (!judged.found) return true;
    plan = *std::move(judged.found);
    return false;
  });
}

}  // namespace

bool dominates(const PlanFigures& a, const PlanFigures& b) {
  const bool no_worse = a.step <= b.step && a.needed <= b.needed && a.sent <= b.sent;
  return no_worse && (a.step < b.step || a.needed < b.needed || a.sent < b.sent);
}

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
  judge_behind(tree, found.best, found.all);
  return {.counts = counts_of(found), .plans = std::move(found.best), .near = std::move(found.all)};
}

}  // namespace placet
