// Bounds of all levels of the tree against the plans below them, where every plan is judged.
#include "search/plan_bounds.h"

#include <gtest/gtest.h>

#include "catalog/choices_catalog.h"
#include "catalog/job.h"
#include "catalog/strategy_catalog.h"
#include "search/device_bounds.h"
#include "search/explain.h"
#include "search/planner.h"

namespace placet {
namespace {

/// More plans than the space below has: nothing is put aside for its value.
constexpr std::size_t kAll = 1'000'000;

// Gradients rest in fp32 and are reduced in bf16, in which the engine lets them wait.
Job reduced_in_half(const std::string& model, const std::string& cluster, int batch) {
  return load_unplaced_job(find_catalog(),
                           {.model = model,
                            .cluster = cluster,
                            .sequence = 512,
                            .global_batch = batch,
                            .precision = "parameters=fp32,compute=bf16,gather=bf16,gradients=fp32,"
                                         "reduce=bf16,master=none",
                            .engine = "accelerate@1"});
}

// A plan below its bound, of whichever level, is an InternalError.
PlanCounts counts_of_all_plans(const Job& base) {
  const Catalog catalog = find_catalog();
  const Choices choices = load_choices(catalog, load_strategies(catalog), "all");
  return find_plans(PlanSpace(base, choices, {}), {.top = kAll}).counts;
}

// Reduced in bf16, and added up in it by whoever scatters gradients after the last of several
// micro-batches: a weight's sum is 2 + 2 bytes an element read and written, where plans that do not
// scatter have 4 + 4 in fp32. Costs of work are shared by both.
TEST(PlanBounds, HoldWhereDeferredGradientsAreAddedUpAsTheyAreReduced) {
  const PlanCounts counts = counts_of_all_plans(reduced_in_half("llama-3.2-1b", "8xh100-sxm", 64));
  EXPECT_TRUE(counts.exact);
  EXPECT_GT(counts.visited, 200);
}

// The same on two devices whose host launches slowly, so that steps are as long with either format,
// and which are linked by a tenth of the rate: what is left of the reductions is less by as much as
// the last backward computes more.
TEST(PlanBounds, HoldWhereSumsTakeTheDeviceAloneLonger) {
  Job base = reduced_in_half("gpt2", "2xh100-sxm", 8);
  base.profile.timing.host_per_launch = microseconds(200);
  for (Level& level : base.cluster->groups.front().levels) {
    level.bandwidth = level.bandwidth * 0.1;
    level.all_reduce.clear();
  }
  const PlanCounts counts = counts_of_all_plans(base);
  EXPECT_TRUE(counts.exact);
  EXPECT_GT(counts.visited, 20);
}

/// Two stages of one unit each, a micro-batch of which goes on to the second and back.
PipelineShape two_stages() {
  PipelineShape out{.devices = {}, .recomputations = {}};
  const std::vector<KindRun> runs = {{.kind = 0, .count = 1}};
  out.devices = {{{.runs = runs, .stage = 0, .count = 1, .sends_forward = true}},
                 {{.runs = runs, .stage = 1, .count = 1, .sends_backward = true}}};
  out.parts = {runs};
  out.units = {{1}, {1}};
  out.unlike = {{1}};
  out.like = {0, 1};
  return out;
}

// Passes of 1 s and 2 s over four micro-batches: the second device's last backward ends at 13 s,
// which its gradients follow for 6 s; the update takes 1 s, messages after it 0.5 s, the host once
// a step 0.25 s.
TEST(PlanBounds, GradientsAreReducedAfterTheLastBackward) {
  const BoundFacts facts{.host_per_step = 0.25, .sender_waits = false, .plain_sender_waits = false};
  const PipelineShape pipeline = two_stages();
  const WorkCosts costs = {
      {.forward = 1, .backward = 2, .weights = 1, .longest_backward = 2, .longest_weights = 1}};
  const WorkPair work{.plain = &costs, .again = &costs};
  const StepCosts messages{.devices = {{.reduce = 2}, {.reduce = 6}}, .update = 1, .after = 0.5};
  const Recompute none{.kind = Recompute::Kind::none};
  WorkFlow flow(form_of(pipeline, 4));
  EXPECT_DOUBLE_EQ(StepBound(facts, pipeline, 4).least_by_order(work, none, messages, flow), 20.75);
  // By the longest way through the devices: 1 s, all work of the second device, 6 s.
  EXPECT_DOUBLE_EQ(StepBound(facts, pipeline, 4).least(work, none, messages), 20.75);
}

/// Sums of gradients in the wider of two formats take 2 s more of each backward. The host launches
/// a backward in 5 s whatever the format.
WorkCosts slowly_launched() {
  return {{.forward = 1,
           .backward = 2,
           .backward_host = 5,
           .weights = 1,
           .longest_backward = 4,
           .longest_weights = 3}};
}

// Of 6 s in three messages the last backward hides as much as it may compute, 4 s and not 2 s; what
// is left would be 4 s beside the shortest one. Two devices, four micro-batches: 1 s, 4 x 6 s, 5 s.
TEST(PlanBounds, GradientsAreReducedBesideTheLongestBackward) {
  const BoundFacts facts{
      .reductions_beside = true, .sender_waits = false, .plain_sender_waits = false};
  const PipelineShape pipeline = two_stages();
  const WorkCosts costs = slowly_launched();
  const WorkPair work{.plain = &costs, .again = &costs};
  const StepCosts messages{.devices = {{.reduce = 6, .units = 3}, {.reduce = 6, .units = 3}}};
  const Recompute none{.kind = Recompute::Kind::none};
  WorkFlow flow(form_of(pipeline, 4));
  EXPECT_DOUBLE_EQ(StepBound(facts, pipeline, 4).least(work, none, messages), 32);
  EXPECT_DOUBLE_EQ(StepBound(facts, pipeline, 4).least_by_order(work, none, messages, flow), 32);
}

// One micro-batch: forward ends after 1 s and 2 s, the values' part of backward takes what the
// longest weights' part leaves of 5 s, and ends after 4 s and 6 s; the shortest weights' part takes
// 1 s: 6 s and that make 7.
TEST(PlanBounds, ASplitBackwardLeavesTheLeastOfBothParts) {
  const BoundFacts facts{.sender_waits = false, .plain_sender_waits = false};
  PipelineShape pipeline = two_stages();
  pipeline.schedule.order = Order::split_single;
  const WorkCosts costs = slowly_launched();
  const WorkPair work{.plain = &costs, .again = &costs};
  const Recompute none{.kind = Recompute::Kind::none};
  WorkFlow flow(form_of(pipeline, 1));
  EXPECT_DOUBLE_EQ(StepBound(facts, pipeline, 1).least_by_order(work, none, {}, flow), 7);
}

// Launching a backward takes the host 5 s, more than the 2 s that the device works on it: 4 times
// 0.5 + 5 s, behind a forward of the first device (1 s) and before a backward of it (5 s). The
// first device holds two micro-batches of 10 bytes, and 15 more while one of them runs.
TEST(DeviceBounds, AHostMayTakeLongerThanItsDevice) {
  const BoundFacts facts{.host_per_step = 0.25};
  const PipelineShape pipeline = two_stages();
  const WorkCosts costs = {{.forward = 1,
                            .forward_host = 0.5,
                            .backward = 2,
                            .backward_host = 5,
                            .kept = 10,
                            .most = 25}};
  const WorkPair work{.plain = &costs, .again = &costs};
  const PipelineInFlight in_flight{.held = {{2}, {1}}, .moments = {}, .all = {true, true}};
  const DeviceBounds bounds(facts, pipeline, in_flight, 4);
  const DeviceBounds::Least least = bounds.least(work, RecomputedPart::all, {100, 100}, 135);
  EXPECT_EQ(least.bytes, 135);
  EXPECT_DOUBLE_EQ(least.step, 28.25);
  EXPECT_EQ(bounds.least(work, RecomputedPart::all, {100, 100}, 134).step, kNoBound);
}

// Nothing recomputed, or all, with optimizer state divided, which the engine refuses to do beside
// recomputation. However slow that plan would be, it is refused, and not put aside.
TEST(PlanTree, WhatARuleExcludesIsNoMatterOfTime) {
  const Catalog catalog = find_catalog();
  Job base = load_unplaced_job(
      catalog,
      {.model = "llama-3.2-1b", .cluster = "2xh100-sxm", .sequence = 2048, .global_batch = 8});
  const When divided{.cuts = {Cut::batch},
                     .states = {{.state = State::optimizer, .modes = {Mode::sharded}}}};
  base.profile.refusals.push_back({.what = "Not both.",
                                   .cure = "one of them",
                                   .when = {divided, {.recomputes = true}},
                                   .source = "a test"});
  const Choices choices = load_choices(catalog, load_strategies(catalog), "all");
  PlanConstraints constraints;
  constraints.degrees[AxisRole::batch] = 2;
  constraints.micro_batch = 4;
  constraints.states.resize(choices.states.size());
  constraints.states[1] = true;  // zero1
  constraints.offloads = {true, false, false};
  constraints.recompute.resize(choices.recompute.size());
  constraints.recompute.front() = constraints.recompute.back() = true;
  const PlanSpace space(base, choices, constraints);
  const PlanResult all = find_plans(space, {});
  ASSERT_EQ(all.plans.size(), 1U);
  for (const double cutoff : {kNoBound, all.plans.front().value}) {
    const PlanCounts counts = find_plans(space, {.cutoff = cutoff}).counts;
    EXPECT_EQ(counts.visited, 1);
    EXPECT_EQ(counts.bounded, 0);
    EXPECT_EQ(counts.rejected, (std::map<std::string, std::int64_t>{{"engine", 1}}));
  }
}

/// The one plan of a device alone with this memory, under an engine that caches blocks and then
/// needs one buffer larger than any of them.
Job cached_job(const Catalog& catalog, Bytes memory) {
  Job job = load_unplaced_job(
      catalog, {.model = "gpt2", .cluster = "1xh100-sxm", .sequence = 1024, .global_batch = 8});
  job.profile.caches_blocks = true;
  EngineMemory buffer{.what = "flat buffer", .instants = bit_of(Instant::update)};
  buffer.category = MemoryCategory::transient;
  buffer.bytes.factor = Rational(in_bytes(gibibytes(3)));
  buffer.in_reserved = true;
  job.profile.memory.push_back(buffer);
  job.cluster->groups[0].device.memory = memory;
  return job;
}

// A device that is a little smaller than what is reserved on a large one: the plan runs only as
// cached blocks go back, which is what it lacks where that is not allowed.
TEST(Shortage, MayBeOfMemoryThatIsOnlyCached) {
  const Catalog catalog = find_catalog();
  const Choices choices = load_choices(catalog, load_strategies(catalog), "all");
  PlanConstraints constraints;
  constraints.micro_batch = 8;
  constraints.offloads = {true, false, false};
  constraints.recompute.resize(choices.recompute.size());
  constraints.recompute.front() = true;
  const Job roomy = cached_job(catalog, gibibytes(80));
  const PlanResult on_large = find_plans(PlanSpace(roomy, choices, constraints), {});
  ASSERT_EQ(on_large.counts.space, 1);
  ASSERT_EQ(on_large.plans.size(), 1U);
  const Bytes reserved = on_large.plans.front().figures.needed;
  const Job small = cached_job(catalog, reserved - mebibytes(2));
  EXPECT_FALSE(find_plans(PlanSpace(small, choices, constraints), {}).plans.empty());
  constraints.allows_tight = false;
  const PlanSpace space(small, choices, constraints);
  EXPECT_TRUE(find_plans(space, {}).plans.empty());
  const PlanShortage shortage = shortage_of(space, {});
  ASSERT_TRUE(shortage.least);
  EXPECT_EQ(shortage.lack, PlanShortage::Lack::cached);
  EXPECT_LT(shortage.needed, shortage.capacity);
  EXPECT_EQ(shortage.devices, 0) << "more devices are no answer to that";
}

}  // namespace
}  // namespace placet
