// What a stage's work repeats is a loop over micro-batches, whose rounds are what the schedule
// says.
#include "lower/rounds.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "algebra/verify.h"
#include "check/check.h"
#include "check/tally.h"
#include "lower/catalogue_jobs.h"
#include "lower/lower.h"
#include "lower/small.h"
#include "program/fault.h"
#include "program/text.h"
#include "program/walk.h"
#include "program/wellformed.h"
#include "units/at.h"

namespace placet::testing {
namespace {

Turn turn(Work::Kind kind, std::int64_t micro_batch) {
  return {.work = {.kind = kind, .chunk = 0, .micro_batch = micro_batch}};
}

/// Stage 0 of two: one forward, a forward and a backward in turn, one backward.
std::vector<Turn> two_stages(std::int64_t micro_batches) {
  std::vector<Turn> turns{turn(Work::Kind::forward, 0)};
  for (std::int64_t j = 0; j < micro_batches; ++j) {
    if (j + 1 < micro_batches) turns.push_back(turn(Work::Kind::forward, j + 1));
    turns.push_back(turn(Work::Kind::backward, j));
  }
  return turns;
}

// f0 | f1 b0 f2 b1 ... f9 b8 | b9.
TEST(RoundsTest, AForwardAndABackwardAreOneRound) {
  const std::vector<Rounds> expected = {
      {.first = 0}, {.first = 1, .period = 2, .rounds = 9, .by = 1}, {.first = 19}};
  EXPECT_EQ(rounds_of(two_stages(10)), expected);
}

// Seven rounds are written one by one.
TEST(RoundsTest, FewRoundsAreNone) {
  const std::vector<Rounds> found = rounds_of(two_stages(8));
  ASSERT_EQ(found.size(), 16U);
  for (const Rounds& one : found) EXPECT_EQ(one.rounds, 1);
}

// The message before the fifth backward brings another one with it: f5 b4 is no round.
TEST(RoundsTest, WhatStandsAroundTheWorkBelongsToTheRound) {
  std::vector<Turn> turns = two_stages(20);
  const StageMessage message{.gradient = true, .unit = 7, .micro_batch = 4, .from = 1, .to = 0};
  turns[10].received = {message};
  const std::vector<Rounds> found = rounds_of(turns);
  // f0 f1 b0 ... b3 f5 b4 one by one, 14 rounds from f6 b5 on, b19.
  ASSERT_EQ(found.size(), 13U);
  EXPECT_EQ(found[11], (Rounds{.first = 11, .period = 2, .rounds = 14, .by = 1}));
}

// All forwards, then backwards from the last one to the first.
TEST(RoundsTest, GoDownwardsToo) {
  std::vector<Turn> turns;
  for (std::int64_t j = 0; j < 9; ++j) turns.push_back(turn(Work::Kind::forward, j));
  for (std::int64_t j = 8; j >= 0; --j) turns.push_back(turn(Work::Kind::backward, j));
  const std::vector<Rounds> expected = {{.first = 0, .period = 1, .rounds = 9, .by = 1},
                                        {.first = 9, .period = 1, .rounds = 9, .by = -1}};
  EXPECT_EQ(rounds_of(turns), expected);
}

constexpr std::int64_t kMicroBatches = 24;

Job long_job(const CatalogueJob& what) {
  Job small = small_job(load(what));
  std::int64_t replicas = 1;
  for (const AxisPlacement& axis : small.placement.axes) {
    if (axis.how.cut == Cut::batch || axis.how.cut == Cut::expert) replicas *= axis.degree;
  }
  small.batch.global = small.batch.micro * replicas * kMicroBatches;
  return small;
}

std::size_t loops_in(const std::vector<Step>& body) {
  std::size_t loops = 0;
  for (const Step& step : body) {
    const auto* loop = std::get_if<Loop>(&step.what);
    if (loop != nullptr && loop->variable == IndexTerm::Variable::micro_batch) ++loops;
  }
  return loops;
}

/// The calls of a class in the order of execution: procedure, unit and micro-batch.
std::vector<std::string> executed(const Program& program, const DeviceClass& own) {
  std::vector<std::string> out;
  const auto go = [&](const auto& self, const std::vector<Step>& body, const Arguments& a) -> void {
    for (const Step& step : body) {
      if (const auto* loop = std::get_if<Loop>(&step.what)) {
        for_each_round(*loop, a, [&](const Arguments& inner) { self(self, loop->body, inner); });
      } else if (const auto* call = std::get_if<Call>(&step.what)) {
        out.push_back(program.procedures[at(call->procedure)].name + " " +
                      std::to_string(value_of(call->unit, a)) + " " +
                      std::to_string(value_of(call->micro_batch, a)));
      }
    }
  };
  go(go, own.body, {});
  return out;
}

class LoopsOfPipelines : public ::testing::TestWithParam<CatalogueJob> {};

// What is executed is the order of the schedule, unit by unit: written down from `order_of_work`.
TEST_P(LoopsOfPipelines, DoTheWorkOfTheSchedule) {
  const Job job = long_job(GetParam());
  const Program program = lower(job);
  const std::int64_t degree = job.placement.axes.front().degree;
  ASSERT_EQ(static_cast<std::int64_t>(program.classes.size()), degree);
  const std::vector<StagePlan> stages = plan_stages(job, kMicroBatches);
  for (std::int64_t d = 0; d < degree; ++d) {
    const DeviceClass& own = program.classes[at(d)];
    EXPECT_GT(loops_in(own.body), 0U);
    std::vector<std::string> expected;
    for (Work work : order_of_work(job.schedule, degree, d, kMicroBatches)) {
      work.micro_batch += stages[at(d)].micro_batches[at(work.chunk)].first;
      std::vector<int> units = stages[at(d)].chunks[at(work.chunk)];
      if (work.kind != Work::Kind::forward) std::ranges::reverse(units);
      for (const int u : units) {
        expected.push_back(std::to_string(u) + " " + std::to_string(work.micro_batch));
      }
    }
    std::vector<std::string> found = executed(program, own);
    for (std::string& one : found) one = one.substr(one.find(' ') + 1);
    EXPECT_EQ(found, expected);
  }
}

TEST_P(LoopsOfPipelines, AreRightAndReadBackAndMeetTheOtherJudge) {
  const Program program = with_short_dims(lower(long_job(GetParam())));
  require_wellformed(program, {.where = "lowered"});
  EXPECT_EQ(program_from(to_text(program), "text"), program);
  EXPECT_TRUE(check(program).equivalent);
  EXPECT_TRUE(verify(program, {.seeds = 1}).equal);
}

// One instruction of a loop is one of each of its rounds.
TEST_P(LoopsOfPipelines, AFaultInALoopIsSeenByBothJudges) {
  const Program program = with_short_dims(lower(long_job(GetParam())));
  for (const char* words :
       {"delete(accumulate, nth=1)", "rescale(compute, by=2, nth=3)", "delete(send, microbatch=13)",
        "delete(accumulate, microbatch=11, nth=2)"}) {
    const Program mutant = with_faults(program, {fault_from(words)});
    EXPECT_FALSE(check(mutant).equivalent) << words;
  }
  const Program mutant =
      with_faults(program, {fault_from("rescale(accumulate, by=2, microbatch=12, nth=1)")});
  EXPECT_FALSE(verify(mutant, {.seeds = 1}).equal);
  EXPECT_FALSE(check(mutant).equivalent);
}

// The bytes alive and sent of a loop, multiplied, are those of its rounds written out
// (docs/theory.md §6.10).
TEST_P(LoopsOfPipelines, NeedAndSendWhatTheirRoundsDo) {
  const Job job = long_job(GetParam());
  const Program program = lower(job);
  for (int c = 0; c < static_cast<int>(program.classes.size()); ++c) {
    Program apart = program;
    std::vector<Step> opened;
    for (const Step& step : program.classes[at(c)].body) {
      const auto* loop = std::get_if<Loop>(&step.what);
      if (loop == nullptr || loop->variable != IndexTerm::Variable::micro_batch) {
        opened.push_back(step);
        continue;
      }
      for_each_round(*loop, {}, [&](const Arguments& a) {
        opened.push_back({Loop{.variable = IndexTerm::Variable::micro_batch,
                               .first = a.micro_batch,
                               .last = a.micro_batch,
                               .body = loop->body}});
      });
    }
    apart.classes[at(c)].body = std::move(opened);
    const Tally own = tally(program, c);
    const Tally other = tally(apart, c);
    EXPECT_EQ(own.peak.bytes, other.peak.bytes);
    EXPECT_EQ(own.peak.families, other.peak.families);
    EXPECT_EQ(own.messages, other.messages);
  }
}

INSTANTIATE_TEST_SUITE_P(OfTheCatalogue, LoopsOfPipelines,
                         ::testing::Values(CatalogueJob{"llama-3.1-8b", "pp=2:1f1b dp=2:zero1"},
                                           CatalogueJob{"gpt2", "pp=2:gpipe dp=2:zero2"},
                                           CatalogueJob{"gpt2", "pp=2:zb-h1 dp=2:zero3+keep"},
                                           CatalogueJob{"llama-3.1-8b", "pp=2:zb-v tp=2:tp+sp"}));

}  // namespace
}  // namespace placet::testing
