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

/// A model of an embedding and a head of 20 elements each, and two blocks of 30.
Model small_model() {
  Model model;
  const auto kind = [&](UnitRole role, std::int64_t elements) {
    UnitKind& made = model.kinds.emplace_back();
    made.role = role;
    made.parameters.emplace_back().dims.push_back({.size = elements});
  };
  kind(UnitRole::embedding, 20);
  kind(UnitRole::block, 30);
  kind(UnitRole::head, 20);
  for (const int k : {0, 1, 1, 2}) model.units.push_back({.kind = k});
  return model;
}

GatherTerms gathers_within(std::int64_t reuse, std::int64_t live) {
  Job job;
  job.model = small_model();
  job.profile.reuse_elements = reuse;
  job.profile.gather_bucket_elements = 7;
  job.profile.live_elements = live;
  return realised_plan(job, kAlone).gathers;
}

// Behind the last block's beginning lie 50 elements, behind the model's 100, each used twice.
TEST(RealisedPlan, KeepsWhatIsUsedSoon) {
  EXPECT_EQ(gathers_within(0, 0), plain().gathers);
  GatherTerms expected = plain().gathers;
  expected.head = Keep::backward;
  EXPECT_EQ(gathers_within(98, 99), expected);
  expected.last_block = Keep::backward;
  EXPECT_EQ(gathers_within(100, 99), expected);
  EXPECT_EQ(gathers_within(198, 99), expected);
  expected.all = Keep::backward;
  EXPECT_EQ(gathers_within(200, 99), expected);
  expected.bucket_elements = 7;
  EXPECT_EQ(gathers_within(200, 100), expected);
}

TEST(RealisedPlan, SumsReplicasWithEachScatter) {
  StepPlan expected = plain();
  expected.reductions.replicas_each = true;
  EXPECT_EQ(plan_with([](Profile& p) { p.replicas_follow_scatter = true; }, kAlone), expected);
}

TEST(RealisedPlan, KeepsGradientsOfTablesWhole) {
  StepPlan expected = plain();
  expected.reductions.tables_whole = true;
  EXPECT_EQ(plan_with([](Profile& p) { p.table_gradients_whole = true; }, kAlone), expected);
}

TEST(RealisedPlan, SumsWholeGradientsInEachMicroBatch) {
  StepPlan expected = plain();
  expected.reductions.whole_each = true;
  EXPECT_EQ(plan_with([](Profile& p) { p.replicas_each_micro_batch = true; }, kTwice), expected);
}

}  // namespace
}  // namespace placet
