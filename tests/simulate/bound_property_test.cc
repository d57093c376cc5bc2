// The search's estimate is a lower bound of the simulated time: over random placements of every
// model of the catalogue, with engines, schedules and clusters.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "amount.h"
#include "derive/derive.h"
#include "derive/step_parts.h"
#include "derive/time.h"
#include "derive/timed_jobs.h"
#include "simulate/simulation.h"

namespace placet::testing {
namespace {

struct Compared {
  std::string text;
  double estimate = 0;
  double simulated = 0;
};

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

Compared compare(const TimedJob& timed, const std::string& text) {
  const auto& [job, prepared] = timed;
  const Simulation simulated =
      simulate(step_parts(job, prepared), {.most_slices = 0, .most_parts = 100'000});
  return {text, in_seconds(derive_time(job, prepared).step), in_seconds(simulated.step)};
}

TEST(SimulationProperties, TheClosedFormIsALowerBound) {
  std::vector<Compared> compared;
  each_timed_job(41, amount_of(2, 2), [&](const TimedJob& timed, const std::string& text) {
    compared.push_back(compare(timed, text));
  });
  ASSERT_GE(compared.size(), static_cast<std::size_t>(amount_of(200, 2)));
  const std::vector<double> ratios = ratios_of(compared);
  EXPECT_LT(ratios[ratios.size() / 2], 1.03);
}

// Engines that run any set of messages beside computation, whose senders wait or do not, whose
// hosts need any time, on links and devices that lose to each other.
TEST(SimulationProperties, TheClosedFormIsALowerBoundWhateverOverlaps) {
  std::vector<Compared> compared;
  std::mt19937 generator(43);
  const auto draw = [&](int most) { return std::uniform_int_distribution<>(0, most)(generator); };
  each_timed_job(42, amount_of(2, 2), [&](TimedJob& timed, const std::string& text) {
    EngineTiming& timing = timed.job.profile.timing;
    timing.overlaps = static_cast<std::uint16_t>(draw((1 << kOverlapCount) - 1));
    timing.sends_block = draw(1) == 0;
    timing.host_per_launch = microseconds(static_cast<double>(draw(40)));
    timing.host_per_pass = microseconds(static_cast<double>(draw(1000)));
    timing.host_per_step = microseconds(static_cast<double>(draw(10'000)));
    for (DeviceGroup& group : timed.job.cluster->groups) {
      group.device.rates.message_share = draw(2) == 0 ? 0 : draw(60) / 100.0;
      for (Level& level : group.levels) level.bandwidth = level.bandwidth / (1.0 + draw(40));
    }
    timing.gathers_after_reductions = draw(1) == 0;
    compared.push_back(compare(timed, text + ", overlaps " + std::to_string(timing.overlaps)));
  });
  ASSERT_GE(compared.size(), static_cast<std::size_t>(amount_of(200, 2)));
  const std::vector<double> ratios = ratios_of(compared);
  EXPECT_LT(ratios[ratios.size() / 2], 1.03);
  RecordProperty("p95", std::to_string(ratios[ratios.size() * 95 / 100]));
  RecordProperty("worst", std::to_string(ratios.back()));
}

}  // namespace
}  // namespace placet::testing
