// The search's estimate is a lower bound of the simulated time: over random placements of every
// model of the catalogue, with engines, schedules and clusters.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "catalog/cluster_catalog.h"
#include "derive/derive.h"
#include "derive/random_jobs.h"
#include "derive/step_parts.h"
#include "derive/time.h"
#include "simulate/simulation.h"

namespace placet::testing {
namespace {

const std::vector<std::string> kClusters = {"h100-sxm:2", "a100-80gb-sxm:64", "v100-32gb-sxm:1",
                                            "16xa100-80gb-sxm,16xh100-sxm"};

/// Calls visit(job, prepared, description) for random jobs that mean something.
template <class Visit>
void each_job(std::uint32_t seed, int placements, Visit visit) {
  const Catalog catalog{PLACET_SOURCE_DIR "/data"};
  RandomJobs random(seed, {.most_axes = 4, .most_devices = 4096});
  for (const std::string& name : random.models()) {
    Job job;
    job.model = random.model(name);
    for (int i = 0; i < placements; ++i) {
      random.place(job);
      job.cluster = load_cluster(catalog, random.any_of(kClusters), std::nullopt, "a test");
      const Prepared prepared = prepare(job);
      if (derive(job, prepared).meaningful) visit(job, prepared, random.describe(job));
    }
  }
}

TEST(SimulationProperties, TheClosedFormIsALowerBound) {
  int jobs = 0;
  int equal = 0;
  std::vector<double> ratios;
  each_job(41, 4, [&](const Job& job, const Prepared& prepared, const std::string& text) {
    const double least = in_seconds(derive_time(job, prepared).step);
    const Simulation simulated =
        simulate(step_parts(job, prepared), {.most_slices = 0, .most_parts = 100'000});
    const double step = in_seconds(simulated.step);
    EXPECT_GE(step, least * (1 - 1e-9)) << text << " micro-batches";
    ratios.push_back(step / least);
    equal += step <= least * (1 + 1e-9) ? 1 : 0;
    ++jobs;
  });
  std::ranges::sort(ratios);
  RecordProperty("jobs", jobs);
  RecordProperty("equal", equal);
  RecordProperty("median", std::to_string(ratios[ratios.size() / 2]));
  RecordProperty("p95", std::to_string(ratios[ratios.size() * 95 / 100]));
  EXPECT_GE(jobs, 400);
}

}  // namespace
}  // namespace placet::testing
