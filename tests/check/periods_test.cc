// What later micro-batches do again is left out. A fault in one of them, wherever it is, must be
// seen, as by the judgement that leaves out nothing.
#include "check/periods.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "check/check.h"
#include "check/machine.h"
#include "check/suspects.h"
#include "lower/catalogue_jobs.h"
#include "lower/lower.h"
#include "lower/small.h"
#include "program/fault.h"
#include "units/error.h"

namespace placet::testing {
namespace {

constexpr std::int64_t kMicroBatches = 24;

/// A small job with so many micro-batches.
Program program_of(const CatalogueJob& what) {
  Job small = small_job(load(what));
  std::int64_t replicas = 1;
  for (const AxisPlacement& axis : small.placement.axes) {
    if (axis.how.cut == Cut::batch || axis.how.cut == Cut::expert) replicas *= axis.degree;
  }
  small.batch.global = small.batch.micro * replicas * kMicroBatches;
  return lower(small);
}

/// How many periods the machine leaves out of two steps.
std::int64_t left_out(const Program& program) {
  Nodes nodes;
  Regions regions(program);
  KernelValues kernels(nodes, regions, program.axes.back().degree);
  ReferenceValues reference(program, nodes, kernels);
  Machine machine(program, nodes, regions, kernels, {.tracing = Tracing::off, .memory = nullptr});
  machine.begin(reference);
  for (int step = 0; step < 2; ++step) {
    reference.advance();
    machine.run_step(reference);
  }
  return machine.left_out();
}

/// None: the program has no place for the fault.
std::optional<Program> with(const Program& program, const std::string& fault) {
  try {
    return with_faults(program, {fault_from(fault)});
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::string text(const CatalogueJob& job) { return job.model + " " + job.placement; }

class LaterMicroBatches : public ::testing::TestWithParam<CatalogueJob> {};

TEST_P(LaterMicroBatches, AreLeftOutOfARightProgram) {
  const Program program = program_of(GetParam());
  EXPECT_GT(left_out(program), 2 * 4) << text(GetParam());
  EXPECT_TRUE(is_right(program)) << text(GetParam());
  EXPECT_TRUE(judge_in_full(program).verdict.equivalent) << text(GetParam());
}

// Of the first, of one in the middle, of the last but one and of the last.
TEST_P(LaterMicroBatches, AFaultInOneIsSeen) {
  const Program program = program_of(GetParam());
  int broken = 0;
  for (const int m : {0, 11, 12, 22, 23}) {
    for (const std::string fault :
         {"delete(accumulate, nth=1", "duplicate(accumulate, nth=2", "rescale(compute, by=2, nth=3",
          "delete(wait, nth=1", "delete(record, nth=2", "delete(compute, nth=4",
          "delete(free, nth=1"}) {
      const std::optional<Program> mutant =
          with(program, fault + ", microbatch=" + std::to_string(m) + ")");
      if (!mutant) continue;
      const bool right = is_right(*mutant);
      EXPECT_EQ(right, judge_in_full(*mutant).verdict.equivalent) << fault << " " << m;
      broken += right ? 0 : 1;
    }
  }
  EXPECT_GE(broken, 5 * 3) << text(GetParam());
}

INSTANTIATE_TEST_SUITE_P(OfTheCatalogue, LaterMicroBatches,
                         ::testing::Values(CatalogueJob{"llama-3.1-8b", "pp=2:1f1b dp=2:zero1"},
                                           CatalogueJob{"llama-3.1-8b", "pp=2:zb-v tp=2:tp+sp"},
                                           CatalogueJob{"llama-3.1-8b",
                                                        "pp=2:interleaved(2) dp=2:zero2"},
                                           CatalogueJob{"llama-3.1-8b", "dp=2:zero3"},
                                           CatalogueJob{"mixtral-8x7b", "ep=2:ep+zero1"}));

// f0 | f1 b0 | f2 b1 | f3 b2 | f4 b3 | b4: all but the first and the last.
TEST(StretchTest, IsWhatRepeatsItself) {
  const Program none{};
  const int forward = 0;
  const int backward = 0;
  std::vector<Passage> list{{.whole = &forward, .arguments = {}}};
  for (std::int64_t m = 0; m < 5; ++m) {
    if (m < 4) list.push_back({.whole = &forward, .arguments = {.unit = 0, .micro_batch = m + 1}});
    list.push_back({.whole = &backward, .arguments = {.unit = 0, .micro_batch = m}});
  }
  const auto stretch = stretch_of(none, list);
  ASSERT_TRUE(stretch.has_value());
  EXPECT_EQ(*stretch, (Stretch{.begin = 1, .end = 9, .period = 2, .shift = 1}));
  // One of another micro-batch leaves less than four periods on either side.
  list[5].arguments.micro_batch = 7;
  EXPECT_FALSE(stretch_of(none, list).has_value());
}

// Buffers of micro-batches 1 and 2 are touched in a period, 3 and later in those that follow: what
// they hold before is to be alike.
TEST(PeriodsTest, WhatLaterPeriodsComeToIsCompared) {
  const Track track{.buffer = {}, .by_micro_batch = true, .first = 1, .last = 2};
  const Periods periods{.shift = 1, .more = 7};
  std::vector<int> now(16, 0);
  now[3] = 5;
  const std::vector<int> before{0, 5};
  const auto read = [&](std::int64_t m) { return now[static_cast<std::size_t>(m)]; };
  const auto same = [](int a, int b) { return a == b; };
  EXPECT_FALSE(repeats(track, periods, before, read, same));
  now[3] = 0;
  now[2] = 0;
  const std::vector<int> nothing{0, 0};
  EXPECT_TRUE(repeats(track, periods, nothing, read, same));
  now[9] = 1;
  EXPECT_FALSE(repeats(track, periods, nothing, read, same));
}

// Micro-batch 0 is done with, which left 4 there; 1 and 2 are under way, with 7. Two periods later
// 1 and 2 are done with, and 3 and 4 under way.
TEST(PeriodsTest, WhatIsLeftOutIsPutInPlace) {
  const Track track{.buffer = {}, .by_micro_batch = true, .first = 0, .last = 2};
  std::vector<int> now{4, 7, 7, 0, 0, 0};
  const auto read = [&](std::int64_t m) { return now[static_cast<std::size_t>(m)]; };
  const auto write = [&](std::int64_t m, int state, std::int64_t times) {
    (void)times;
    now[static_cast<std::size_t>(m)] = state;
  };
  leave_out(track, {.shift = 1, .more = 2}, read, write);
  EXPECT_EQ(now, (std::vector<int>{4, 4, 4, 7, 7, 0}));
}

}  // namespace
}  // namespace placet::testing
