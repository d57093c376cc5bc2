// Whole searches, on all processors: real models on real clusters.
#include <benchmark/benchmark.h>
#include <tbb/parallel_for.h>

#include <atomic>
#include <string>

#include "catalog/choices_catalog.h"
#include "catalog/job.h"
#include "catalog/strategy_catalog.h"
#include "search/explain.h"
#include "search/plan_estimates.h"
#include "search/planner.h"
#include "search/prove.h"

namespace placet {
namespace {

struct Case {
  const char* model;
  const char* cluster;
  std::int64_t sequence;
  std::int64_t global_batch;
};

constexpr Case kCases[] = {
    {"llama-3.1-8b", "h100-sxm:1", 8192, 128},
    {"llama-3.1-70b", "h100-sxm:8", 8192, 512},
    {"gpt3-175b", "4096xa100-80gb-sxm", 2048, 2520},
    {"llama-3.1-405b", "16384xh100-sxm", 8192, 2048},
    {"deepseek-v3", "2048xh800-sxm", 4096, 15360},
    {"llama-3.1-70b", "512xa100-80gb-sxm,512xh100-sxm", 8192, 2048},
};

constexpr std::int64_t kMostPasses = 1 << 16;

Job job_of(const Case& one) {
  JobRequest request;
  request.model = one.model;
  request.cluster = one.cluster;
  request.sequence = one.sequence;
  request.global_batch = one.global_batch;
  return load_unplaced_job(find_catalog(), request);
}

Choices choices() {
  const Catalog catalog = find_catalog();
  return load_choices(catalog, load_strategies(catalog), "all");
}

void find_the_best_five(benchmark::State& state) {
  const Case& one = kCases[state.range(0)];
  const Job base = job_of(one);
  const Choices words = choices();
  const PlanSpace space(base, words, {});
  PlanCounts counts;
  for (auto unused : state) counts = find_plans(space, {.top = 5}).counts;
  state.counters["space"] = static_cast<double>(counts.space);
  state.counters["visited"] = static_cast<double>(counts.visited);
  state.SetLabel(std::string(one.model) + " on " + one.cluster);
}
BENCHMARK(find_the_best_five)
    ->DenseRange(0, 5)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

/// Memory, bytes sent and time of every plan of the space, put together from tables that are made
/// on the way: what a search asks of a plan before it judges it in full.
void estimate_all_plans(benchmark::State& state) {
  const Case& one = kCases[state.range(0)];
  const Job base = job_of(one);
  const Choices words = choices();
  const PlanSpace space(base, words, {});
  const std::vector<Degrees> meshes = space.meshes();
  std::atomic<std::int64_t> plans = 0;
  for (auto unused : state) {
    PlanCosts costs(space);
    const PlanEstimates estimates(space, costs);
    tbb::parallel_for(std::size_t{0}, meshes.size(), [&](std::size_t i) {
      std::int64_t own = 0;
      PlanEstimate least{.step = kNoBound};
      estimates.each(meshes[i], [&](const Plan&, const PlanEstimate& estimate) {
        ++own;
        if (estimate.step < least.step) least = estimate;
      });
      benchmark::DoNotOptimize(least);
      plans += own;
    });
  }
  state.counters["plans_per_second"] =
      benchmark::Counter(static_cast<double>(plans), benchmark::Counter::kIsRate);
  state.SetLabel(std::string(one.model) + " on " + one.cluster);
}
BENCHMARK(estimate_all_plans)
    ->DenseRange(0, 1)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

/// The step programs of the best five plans, written and checked side by side.
void prove_the_best_five(benchmark::State& state) {
  const Case& one = kCases[state.range(0)];
  const Job base = job_of(one);
  const Choices words = choices();
  const PlanSpace space(base, words, {});
  std::vector<Plan> plans;
  for (const FoundPlan& found : find_plans(space, {.top = 5}).plans) plans.push_back(found.plan);
  for (auto unused : state) {
    benchmark::DoNotOptimize(prove_all(space, plans, kMostPasses, [] { return true; }));
  }
  state.SetLabel(std::string(one.model) + " on " + one.cluster);
}
BENCHMARK(prove_the_best_five)
    ->DenseRange(0, 1)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

/// What is said about the best plan: its neighbours, and what more would bring.
void explain_the_best(benchmark::State& state) {
  const Case& one = kCases[state.range(0)];
  const Job base = job_of(one);
  const Choices words = choices();
  const PlanSpace space(base, words, {});
  const PlanOptions options{.top = 5, .costs = std::make_shared<PlanCosts>(space)};
  const FoundPlan best = find_plans(space, options).plans.front();
  for (auto unused : state) {
    benchmark::DoNotOptimize(neighbours_of(space, best, options));
    benchmark::DoNotOptimize(margins_of(space, best, options));
  }
  state.SetLabel(std::string(one.model) + " on " + one.cluster);
}
BENCHMARK(explain_the_best)
    ->DenseRange(0, 1)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

/// One plan judged in full: what a search without bounds would do for each.
void judge_one_plan(benchmark::State& state) {
  const Case& one = kCases[state.range(0)];
  const Job base = job_of(one);
  const Choices words = choices();
  const PlanSpace space(base, words, {});
  const PlanResult result = find_plans(space, {.top = 1});
  const PlanTree tree(space, PlanGoal::time);
  for (auto unused : state) {
    benchmark::DoNotOptimize(tree.evaluate(result.plans.front().plan));
  }
  state.SetLabel(std::string(one.model) + " on " + one.cluster);
}
BENCHMARK(judge_one_plan)->DenseRange(0, 1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace placet
