// Estimates from tables are never above what a plan takes.
#include "search/plan_estimates.h"

#include <gtest/gtest.h>

#include "catalog/choices_catalog.h"
#include "catalog/job.h"
#include "catalog/strategy_catalog.h"
#include "search/plan_tree.h"

namespace placet {
namespace {

/// Every so many plans of a space are derived.
constexpr std::int64_t kEach = 97;

void expect_bounds(const std::string& model, const std::string& cluster) {
  const Catalog catalog = find_catalog();
  Job base = load_unplaced_job(
      catalog, {.model = model, .cluster = cluster, .sequence = 2048, .global_batch = 8});
  for (DeviceGroup& group : base.cluster->groups) {
    group.device.memory = group.device.memory * 100;
    group.host_memory = group.host_memory * 100;
  }
  const Choices choices = load_choices(catalog, load_strategies(catalog), "all");
  const PlanSpace space(base, choices, {});
  PlanCosts costs(space);
  const PlanEstimates estimates(space, costs);
  const PlanTree tree(space, PlanGoal::time);
  std::int64_t plans = 0;
  std::int64_t judged = 0;
  for (const Degrees& mesh : space.meshes()) {
    estimates.each(mesh, [&](const Plan& plan, const PlanEstimate& estimate) {
      if (plans++ % kEach != 0) return;
      const EvaluatedPlan exact = tree.evaluate(plan);
      if (!exact.found) return;
      ++judged;
      const PlanFigures& figures = exact.found->figures;
      EXPECT_LE(estimate.step, in_seconds(figures.step) * (1 + kRounding));
      EXPECT_LE(estimate.bytes, in_bytes(figures.peak));
      EXPECT_LE(estimate.sent, in_bytes(figures.sent));
      // Not so far below that it says nothing.
      EXPECT_GE(estimate.step, in_seconds(figures.step) / 4);
      EXPECT_GE(estimate.bytes, in_bytes(figures.peak) / 20);
    });
  }
  EXPECT_GT(judged, 200);
}

TEST(PlanEstimates, AreBoundsOfPlansOfADenseModel) { expect_bounds("llama-3.2-1b", "4xh100-sxm"); }

TEST(PlanEstimates, AreBoundsOfPlansWithExperts) { expect_bounds("olmoe-1b-7b", "4xh100-sxm"); }

}  // namespace
}  // namespace placet
