// On the best hundred plans of a search (in daily work twenty) the estimate by which they were
// found is at most the simulated time, and within 3 % of it.
#include <gtest/gtest.h>

#include <string>

#include "amount.h"
#include "catalog/choices_catalog.h"
#include "catalog/job.h"
#include "catalog/strategy_catalog.h"
#include "derive/step_parts.h"
#include "search/planner.h"
#include "simulate/simulation.h"

namespace placet {
namespace {

struct Searched {
  const char* model;
  const char* cluster;
  const char* engine;
};

void PrintTo(const Searched& searched, std::ostream* out) {
  *out << searched.model << " on " << searched.cluster << ", " << searched.engine;
}

class BestPlans : public ::testing::TestWithParam<Searched> {};

TEST_P(BestPlans, AreEstimatedFromBelowAndNearly) {
  const Catalog catalog{PLACET_SOURCE_DIR "/data"};
  JobRequest request;
  request.model = GetParam().model;
  request.cluster = GetParam().cluster;
  request.engine = GetParam().engine;
  request.sequence = 4096;
  request.global_batch = 128;
  const Job base = load_unplaced_job(catalog, request);
  const Choices choices = load_choices(catalog, load_strategies(catalog), "all");
  const PlanSpace space(base, choices, {});
  const auto top = static_cast<std::size_t>(placet::testing::amount_of(100, 5));
  const PlanResult result = find_plans(space, {.top = top});
  ASSERT_EQ(result.plans.size(), top);
  for (const FoundPlan& plan : result.plans) {
    Job job = base;
    space.apply(plan.plan, job);
    const double step =
        in_seconds(simulate(step_parts(job, prepare(job)), {.most_slices = 0}).step);
    EXPECT_GE(step, plan.value * (1 - 1e-9)) << job.placement_text;
    EXPECT_LE(step, plan.value * 1.03) << job.placement_text;
  }
}

INSTANTIATE_TEST_SUITE_P(Spaces, BestPlans,
                         ::testing::Values(Searched{"llama-3.1-8b", "h100-sxm:1", "placet"},
                                           Searched{"llama-3.1-8b", "h100-sxm:2", "torchtitan"},
                                           Searched{"llama-2-70b", "a100-80gb-sxm:8", "megatron"},
                                           Searched{"mixtral-8x7b", "h100-sxm:4", "placet"}));

}  // namespace
}  // namespace placet
