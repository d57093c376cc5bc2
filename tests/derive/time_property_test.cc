// Properties of every time, over random placements of every model of the catalogue on random
// clusters: terms add up to the step; one call for everything gives what the single ones give;
// stages that share their derivation take what they take alone, unit by unit; and hardware FLOPs
// are model FLOPs and what is computed again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "amount.h"
#include "derive/derive.h"
#include "derive/fit.h"
#include "derive/stage_devices.h"
#include "derive/stages.h"
#include "derive/time.h"
#include "derive/timed_jobs.h"

namespace placet::testing {
namespace {

TEST(TimeProperties, TermsAddUpToTheStep) {
  int jobs = 0;
  each_timed_job(11, amount_of(4, 2), [&](const TimedJob& timed, const std::string& text) {
    const TimeDerivation time = derive_time(timed.job, timed.prepared);
    double sum = 0;
    for (const TimeTerm& term : time.terms) sum += in_seconds(term.time);
    ASSERT_TRUE(time.known) << text;
    ASSERT_TRUE(std::isfinite(sum)) << text;
    ASSERT_NEAR(sum, in_seconds(time.step), 1e-9 * sum) << text;
    ++jobs;
  });
  EXPECT_GE(jobs, amount_of(400, 2));
}

TEST(TimeProperties, OneCallGivesWhatTheSingleOnesGive) {
  each_timed_job(12, amount_of(3, 3), [](const TimedJob& timed, const std::string& text) {
    WholeDerivation all = derive_all(timed.job, timed.prepared);
    judge_reserved(timed.job, timed.prepared, all.derivation);
    const Derivation alone = derive(timed.job, timed.prepared);
    const TimeDerivation time = derive_time(timed.job, timed.prepared);
    ASSERT_EQ(all.derivation.peak, alone.peak) << text;
    ASSERT_EQ(all.derivation.sent, alone.sent) << text;
    ASSERT_EQ(all.derivation.fit, alone.fit) << text;
    const std::size_t said = alone.fit == FitGrade::tight ? 1 : 0;  // by derive alone
    ASSERT_EQ(all.derivation.findings.size() + said, alone.findings.size()) << text;
    ASSERT_EQ(all.time.terms, time.terms) << text;
    ASSERT_EQ(all.time.step, time.step) << text;
  });
}

/// Whether backward computes some unit or operator once more.
bool recomputes(const TimeDerivation& time) {
  return std::ranges::any_of(time.terms, [](const TimeTerm& term) {
    return term.phase == "recomputation" && term.what != "streams" &&
           term.kind == TimeKind::compute;
  });
}

TEST(TimeProperties, HardwareFlopsAreModelFlopsAndWhatIsComputedAgain) {
  int again = 0;
  int once = 0;
  each_timed_job(14, amount_of(4, 2), [&](const TimedJob& timed, const std::string& text) {
    const TimeDerivation time = derive_time(timed.job, timed.prepared);
    ASSERT_GE(hardware_utilisation(time), utilisation(time)) << text;
    if (recomputes(time)) {
      ASSERT_GT(time.hardware_flops, time.model_flops) << text;
      ++again;
    } else if (time.stages.size() == 1) {
      ASSERT_EQ(time.hardware_flops, time.model_flops) << text;
      ++once;
    }
  });
  EXPECT_GE(again, amount_of(50, 2));
  EXPECT_GE(once, amount_of(50, 2));
}

/// The gradients of weights that one micro-batch makes in a chunk, from its units one by one.
Seconds weights_of(const Layout& layout, const std::vector<int>& chunk, const GroupSet& devices) {
  Seconds sum;
  for (const int u : chunk) {
    sum += unit_time(layout, layout.unit_of[static_cast<std::size_t>(u)], false, devices).weights;
  }
  return sum;
}

// Kernels that make gradients of weights are the same whether a unit is recomputed or not, so that
// every unit may be timed alone here.
TEST(TimeProperties, StagesThatShareTheirDerivationTakeWhatTheyTakeAlone) {
  int stages_seen = 0;
  each_timed_job(13, amount_of(3, 3), [&](const TimedJob& timed, const std::string& text) {
    const TimeDerivation time = derive_time(timed.job, timed.prepared);
    const Layout layout = lay_out(timed.job, timed.prepared);
    const std::vector<Stage> stages = stages_of(timed.job);
    for (std::size_t s = 0; s < std::min<std::size_t>(stages.size(), 8); ++s) {
      const Cluster& cluster = *timed.job.cluster;
      const GroupSet devices = groups_of_stage(cluster, timed.job.placement, stages[s].device);
      for (std::size_t c = 0; c < stages[s].chunks.size(); ++c) {
        const double alone = in_seconds(weights_of(layout, stages[s].chunks[c], devices));
        const double shared = in_seconds(time.stages[s].chunks[c].backward_weight);
        ASSERT_NEAR(shared, alone, 1e-9 * alone) << text << ", stage " << s;
      }
      ++stages_seen;
    }
  });
  EXPECT_GE(stages_seen, amount_of(500, 3));
}

}  // namespace
}  // namespace placet::testing
