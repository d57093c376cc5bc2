// Passes over the plan of a step: each changes the terms that it names, where its facts are, and
// nothing else. What a changed term does to two devices is asked of programs (tests/lower).
#include <gtest/gtest.h>

#include "layout/realised.h"

namespace placet {
namespace {

constexpr StepShape kAlone{.stages = 1, .micro_batches = 1};
constexpr StepShape kTwice{.stages = 1, .micro_batches = 2};
constexpr StepShape kStages{.stages = 2, .micro_batches = 1};

using Facts = void (*)(Profile&);

/// The plan of a job with that profile; gradients rest in bf16 and are reduced in fp32.
StepPlan plan_with(Facts facts, const StepShape& shape) {
  Job job;
  job.precision.gradients = Dtype::bf16;
  job.precision.reduce = Dtype::fp32;
  facts(job.profile);
  return realised_plan(job, shape);
}

StepPlan plain() {
  StepPlan plan;
  plan.reductions.waits_in = Dtype::bf16;
  plan.gathers.ahead = 0;
  return plan;
}

TEST(RealisedPlan, IsThePlainOneWithoutFacts) {
  EXPECT_EQ(plan_with([](Profile&) {}, kAlone), plain());
  EXPECT_EQ(plan_with([](Profile&) {}, {.stages = 4, .micro_batches = 8}), plain());
}

TEST(RealisedPlan, LeavesSmallTensorsWhole) {
  StepPlan expected = plain();
  expected.gathers.whole_below = 10;
  EXPECT_EQ(plan_with([](Profile& p) { p.persistent_elements = 10; }, kAlone), expected);
}

TEST(RealisedPlan, LengthensWindows) {
  const StepPlan head = plan_with([](Profile& p) { p.last_unit_stays_gathered = true; }, kAlone);
  StepPlan expected = plain();
  expected.gathers.head = Keep::backward;
  EXPECT_EQ(head, expected);
  EXPECT_TRUE(stays_to_backward(head.gathers, UnitRole::head));
  EXPECT_FALSE(stays_to_backward(head.gathers, UnitRole::embedding));

  const StepPlan block = plan_with([](Profile& p) { p.last_block_stays_gathered = true; }, kAlone);
  EXPECT_EQ(kept_whole(block.gathers, UnitRole::block, true, Keep::none), Keep::backward);
  EXPECT_EQ(kept_whole(block.gathers, UnitRole::block, true, Keep::step), Keep::step);
  EXPECT_EQ(kept_whole(block.gathers, UnitRole::block, false, Keep::none), Keep::none);

  const StepPlan ends = plan_with([](Profile& p) { p.joins_ends = true; }, kAlone);
  EXPECT_EQ(kept_whole(ends.gathers, UnitRole::embedding, false, Keep::none), Keep::step);
  EXPECT_TRUE(stays_to_backward(ends.gathers, UnitRole::embedding));
  EXPECT_FALSE(stays_to_backward(ends.gathers, UnitRole::block));
}

TEST(RealisedPlan, GathersAheadUnlessThePlacementSays) {
  const Facts two = [](Profile& p) { p.prefetch = 2; };
  EXPECT_EQ(plan_with(two, kAlone).gathers.ahead, 2);
  Job job;
  two(job.profile);
  job.placement.axes.emplace_back().how.prefetch = 0;
  EXPECT_EQ(realised_plan(job, kAlone).gathers.ahead, 0);
}

TEST(RealisedPlan, PutsOffReductionsOfSeveralMicroBatches) {
  const Facts late = [](Profile& p) { p.defers_scatter = true; };
  EXPECT_EQ(plan_with(late, kAlone), plain());
  StepPlan expected = plain();
  expected.reductions.once_a_step = true;
  EXPECT_EQ(plan_with(late, kTwice), expected);
  expected.reductions.waits_in = Dtype::fp32;
  const Facts wide = [](Profile& p) { p.defers_scatter = p.defers_as_reduced = true; };
  EXPECT_EQ(plan_with(wide, kTwice), expected);
  EXPECT_EQ(plan_with([](Profile& p) { p.defers_as_reduced = true; }, kTwice), plain());
}

TEST(RealisedPlan, HoldsParametersOverAPipeline) {
  const Facts held = [](Profile& p) { p.layer_cut_defers_sharding = true; };
  EXPECT_EQ(plan_with(held, kTwice), plain());
  StepPlan expected = plain();
  expected.gathers.once_a_step = true;
  expected.reductions.once_a_step = true;
  EXPECT_EQ(plan_with(held, kStages), expected);
}

TEST(RealisedPlan, SumsReplicasWithEachScatter) {
  StepPlan expected = plain();
  expected.reductions.replicas_each = true;
  EXPECT_EQ(plan_with([](Profile& p) { p.replicas_follow_scatter = true; }, kAlone), expected);
}

}  // namespace
}  // namespace placet
