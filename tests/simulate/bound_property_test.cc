// The search's estimate is a lower bound of the simulated time: over random placements of every
// model of the catalogue, with engines, schedules and clusters.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
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

struct Compared {
  std::string text;
  double estimate = 0;
  double simulated = 0;
};

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

/// The ratios of simulated to estimated steps, in rising order; every one is at least 1.
std::vector<double> ratios_of(const std::vector<Compared>& compared) {
  std::vector<double> ratios;
  for (const Compared& one : compared) {
    EXPECT_GE(one.simulated, one.estimate * (1 - 1e-9)) << one.text;
    ratios.push_back(one.simulated / one.estimate);
  }
  std::ranges::sort(ratios);
  return ratios;
}

Compared compare(const Job& job, const Prepared& prepared, const std::string& text) {
  const Simulation simulated =
      simulate(step_parts(job, prepared), {.most_slices = 0, .most_parts = 100'000});
  return {text, in_seconds(derive_time(job, prepared).step), in_seconds(simulated.step)};
}

TEST(SimulationProperties, TheClosedFormIsALowerBound) {
  std::vector<Compared> compared;
  each_job(41, 4, [&](const Job& job, const Prepared& prepared, const std::string& text) {
    compared.push_back(compare(job, prepared, text));
  });
  ASSERT_GE(compared.size(), 400U);
  const std::vector<double> ratios = ratios_of(compared);
  EXPECT_LT(ratios[ratios.size() / 2], 1.03);
}

// Engines that run any set of messages beside computation, whose senders wait or do not, whose
// hosts need any time, on links and devices that lose to each other.
TEST(SimulationProperties, TheClosedFormIsALowerBoundWhateverOverlaps) {
  std::vector<Compared> compared;
  std::mt19937 generator(43);
  const auto draw = [&](int most) { return std::uniform_int_distribution<>(0, most)(generator); };
  each_job(42, 4, [&](Job& job, const Prepared& prepared, const std::string& text) {
    EngineTiming& timing = job.profile.timing;
    timing.overlaps = static_cast<std::uint16_t>(draw((1 << kOverlapCount) - 1));
    timing.sends_block = draw(1) == 0;
    timing.host_per_launch = microseconds(static_cast<double>(draw(40)));
    timing.host_per_pass = microseconds(static_cast<double>(draw(1000)));
    timing.host_per_step = microseconds(static_cast<double>(draw(10'000)));
    for (DeviceGroup& group : job.cluster->groups) {
      group.device.rates.message_share = draw(2) == 0 ? 0 : draw(60) / 100.0;
      for (Level& level : group.levels) level.bandwidth = level.bandwidth / (1.0 + draw(40));
    }
    compared.push_back(
        compare(job, prepared, text + ", overlaps " + std::to_string(timing.overlaps)));
  });
  ASSERT_GE(compared.size(), 400U);
  const std::vector<double> ratios = ratios_of(compared);
  EXPECT_LT(ratios[ratios.size() / 2], 1.03);
  RecordProperty("p95", std::to_string(ratios[ratios.size() * 95 / 100]));
  RecordProperty("worst", std::to_string(ratios.back()));
}

}  // namespace
}  // namespace placet::testing
