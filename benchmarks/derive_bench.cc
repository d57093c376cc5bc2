// What one answer costs once the model is read: a placement derived, its allocations replayed, its
// report printed; and what reading a model costs.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "catalog/job.h"
#include "catalog/model_catalog.h"
#include "derive/derive.h"
#include "derive/reserve.h"
#include "derive/time.h"
#include "report/json.h"

namespace placet {
namespace {

struct Case {
  const char* model;
  const char* placement;
  std::int64_t global_batch;
};

constexpr Case kCases[] = {
    {"llama-3.1-70b", "dp=64:ddp", 512},
    {"llama-3.1-70b", "dp=64:zero3", 512},
    {"llama-3.1-70b", "dp=8:zero1 tp=8:tp+sp", 512},
    {"llama-3.1-70b", "pp=4:1f1b dp=8:zero1 tp=8:tp+sp", 512},
    {"llama-3.1-405b", "pp=16:interleaved(2) dp=64:zero3 cp=2:ring tp=8:tp+sp", 2048},
    {"deepseek-v3", "dp=8:zero1 ep=64:ep+zero1", 4096},
    {"deepseek-v3", "pp=16:1f1b dp=2:zero1 ep=64:ep+zero1", 4096},
};

JobRequest request_of(const Case& one) {
  JobRequest request;
  request.model = one.model;
  request.placement = one.placement;
  request.global_batch = one.global_batch;
  request.sequence = 4096;
  return request;
}

Job job_of(const Case& one) { return load_job(find_catalog(), request_of(one)); }

Job timed_job_of(const Case& one) {
  JobRequest request = request_of(one);
  request.cluster = "h100-sxm:" + std::to_string(devices_of(job_of(one).placement) / 8);
  return load_job(find_catalog(), request);
}

std::string label_of(const Case& one) { return std::string(one.model) + " " + one.placement; }

/// The inner loop of a search: model, profile and recomputation stay, placements change.
void derive_prepared(benchmark::State& state) {
  const Case& one = kCases[state.range(0)];
  const Job job = job_of(one);
  const Prepared prepared = prepare(job);
  for (auto unused : state) benchmark::DoNotOptimize(derive(job, prepared));
  state.SetLabel(label_of(one));
}
BENCHMARK(derive_prepared)->DenseRange(0, std::size(kCases) - 1)->Unit(benchmark::kMicrosecond);

/// The time of one placement on H100s, as many hosts of them as the placement has devices for.
void time_prepared(benchmark::State& state) {
  const Case& one = kCases[state.range(0)];
  const Job job = timed_job_of(one);
  const Prepared prepared = prepare(job);
  for (auto unused : state) benchmark::DoNotOptimize(derive_time(job, prepared));
  state.SetLabel(label_of(one));
}
BENCHMARK(time_prepared)->DenseRange(0, std::size(kCases) - 1)->Unit(benchmark::kMicrosecond);

/// Memory, communication and time together: what a search asks of one plan.
void derive_everything(benchmark::State& state) {
  const Case& one = kCases[state.range(0)];
  const Job job = timed_job_of(one);
  const Prepared prepared = prepare(job);
  for (auto unused : state) benchmark::DoNotOptimize(derive_all(job, prepared));
  state.SetLabel(label_of(one));
}
BENCHMARK(derive_everything)->DenseRange(0, std::size(kCases) - 1)->Unit(benchmark::kMicrosecond);

void derive_whole(benchmark::State& state) {
  const Case& one = kCases[state.range(0)];
  const Job job = job_of(one);
  for (auto unused : state) benchmark::DoNotOptimize(derive(job));
  state.SetLabel(label_of(one));
}
BENCHMARK(derive_whole)->DenseRange(0, std::size(kCases) - 1)->Unit(benchmark::kMicrosecond);

void replay_allocations(benchmark::State& state) {
  const Case& one = kCases[state.range(0)];
  const Job job = job_of(one);
  const Prepared prepared = prepare(job);
  for (auto unused : state) benchmark::DoNotOptimize(reserve(job, prepared, 0));
  state.SetLabel(label_of(one));
}
BENCHMARK(replay_allocations)->DenseRange(0, std::size(kCases) - 1)->Unit(benchmark::kMicrosecond);

void print_report(benchmark::State& state) {
  const Case& one = kCases[state.range(0)];
  const auto job = std::make_shared<const Job>(job_of(one));
  const Judged judged{.job = job, .derivation = derive(*job)};
  for (auto unused : state) benchmark::DoNotOptimize(derivation_json(judged));
  state.SetLabel(label_of(one));
}
BENCHMARK(print_report)->DenseRange(0, std::size(kCases) - 1)->Unit(benchmark::kMicrosecond);

void read_model(benchmark::State& state) {
  const Catalog catalog = find_catalog();
  const std::string name = kCases[state.range(0)].model;
  for (auto unused : state) benchmark::DoNotOptimize(load_model(catalog, name));
  state.SetLabel(name);
}
BENCHMARK(read_model)->Arg(0)->Arg(4)->Arg(5)->Unit(benchmark::kMicrosecond);

/// All of the catalogue: the time of one model is this over the number of items.
void read_every_model(benchmark::State& state) {
  const Catalog catalog = find_catalog();
  const std::vector<std::string> names = model_names(catalog);
  for (auto unused : state) {
    for (const std::string& name : names) benchmark::DoNotOptimize(load_model(catalog, name));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(names.size()));
}
BENCHMARK(read_every_model)->Unit(benchmark::kMillisecond);

/// Everything from words to a job: strategies, engine, optimizer, model.
void read_job(benchmark::State& state) {
  for (auto unused : state) benchmark::DoNotOptimize(job_of(kCases[state.range(0)]));
  state.SetLabel(label_of(kCases[state.range(0)]));
}
BENCHMARK(read_job)->Arg(3)->Arg(5)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace placet
