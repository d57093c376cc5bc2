// Bounds of all levels of the tree against the plans below them, where every plan is judged.
#include "search/plan_bounds.h"

#include <gtest/gtest.h>

#include "catalog/choices_catalog.h"
#include "catalog/job.h"
#include "catalog/strategy_catalog.h"
#include "search/planner.h"

namespace placet {
namespace {

/// More plans than the space below has: nothing is put aside for its value.
constexpr std::size_t kAll = 1'000'000;

// Reduced in bf16, and added up in it by whoever scatters gradients after the last of several
// micro-batches: a weight's sum is 2 + 2 bytes an element read and written, where plans that do not
// scatter have 4 + 4 in fp32. Costs of work are shared by both.
TEST(PlanBounds, HoldWhereDeferredGradientsAreAddedUpAsTheyAreReduced) {
  const Catalog catalog = find_catalog();
  const Job base = load_unplaced_job(
      catalog, {.model = "llama-3.2-1b",
                .cluster = "8xh100-sxm",
                .sequence = 512,
                .global_batch = 64,
                .precision = "parameters=fp32,compute=bf16,gather=bf16,gradients=fp32,"
                             "reduce=bf16,master=none",
                .engine = "accelerate@1"});
  const Choices choices = load_choices(catalog, load_strategies(catalog), "all");
  // A plan below its bound, of whichever level, is an InternalError.
  const PlanCounts counts = find_plans(PlanSpace(base, choices, {}), {.top = kAll}).counts;
  EXPECT_TRUE(counts.exact);
  EXPECT_GT(counts.visited, 200);
}

}  // namespace
}  // namespace placet
