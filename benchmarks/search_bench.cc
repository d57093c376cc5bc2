// Whole searches, on all processors: real models on real clusters.
#include <benchmark/benchmark.h>

#include <string>

#include "catalog/choices_catalog.h"
#include "catalog/job.h"
#include "catalog/strategy_catalog.h"
#include "search/explain.h"
#include "search/planner.h"

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
BENCHMARK(find_the_best_five)->DenseRange(0, 5)->Unit(benchmark::kMillisecond)->UseRealTime();

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
