#include "simulate/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

namespace placet {
namespace {

constexpr AxisMask kAxis = 1;

/// Stages of one unit each: 1 s forward and 2 s backward, half of it for weights; two links, the
/// first of which all messages take.
StepParts even_parts(std::size_t stages, std::int64_t m, Schedule schedule) {
  StepParts parts;
  parts.form = {.schedule = std::move(schedule),
                .degree = static_cast<std::int64_t>(stages),
                .micro_batches = m};
  StageParts stage;
  for (std::int64_t c = 0; c < parts.form.schedule.chunks; ++c) {
    ChunkParts chunk{.units = 1};
    chunk.forward.push_back({.unit = 0, .part = WorkPart::forward, .kernels = seconds(1)});
    chunk.backward.push_back(
        {.unit = 0, .part = WorkPart::backward, .kernels = seconds(2), .weights = seconds(1)});
    stage.chunks.push_back(chunk);
    ++stage.units;
  }
  parts.kinds.push_back(stage);
  parts.of_stage.assign(stages, 0);
  parts.links = {{"between hosts"}, {"host link"}};
  parts.uses = {{kAxis, {{.link = 0, .part = 1}}}};
  parts.message_use = {{.link = 0, .part = 1}};
  return parts;
}

MessagePart message(double time) {
  return {.axes = kAxis, .what = "a message", .time = seconds(time), .bytes = bytes(100)};
}

double step_of(const StepParts& parts) { return in_seconds(simulate(parts, {}).step); }

// (m + p - 1)(f + b): the pipeline fills and drains once. 4 stages, 8 micro-batches: 11 x 3.
TEST(Simulation, EvenStagesTakeTheTextbooksTime) {
  const Schedule all_forward{.order = Order::all_forward};
  EXPECT_DOUBLE_EQ(step_of(even_parts(4, 8, all_forward)), 11 * 3);
  EXPECT_DOUBLE_EQ(step_of(even_parts(4, 8, {})), 11 * 3);
  EXPECT_DOUBLE_EQ(step_of(even_parts(1, 5, {})), 5 * 3);
}

// What a stage does and what it waits for add up to the step: 8 x 3 of work, 3 x 3 of bubble.
TEST(Simulation, EachStagesTimeAddsUpToTheStep) {
  const Simulation simulated = simulate(even_parts(4, 8, {}), {});
  for (const SimulatedStage& stage : simulated.stages) {
    Seconds sum = stage.idle;
    for (const Seconds spent : stage.spent) sum += spent;
    EXPECT_DOUBLE_EQ(in_seconds(sum), 33);
    EXPECT_DOUBLE_EQ(in_seconds(stage.of(Doing::forward)), 8);
    EXPECT_DOUBLE_EQ(in_seconds(stage.of(Doing::backward)), 16);
  }
  EXPECT_DOUBLE_EQ(in_seconds(simulated.stages[0].idle), 9);
}

// Stage 1 of 2 slower by a half: 8 x 4.5 s there, and one forward and one backward of stage 0.
TEST(Simulation, AStragglerSetsThePace) {
  const Simulation simulated = simulate(even_parts(2, 8, {}), {.slower = {1, 1.5}});
  EXPECT_DOUBLE_EQ(in_seconds(simulated.step), 8 * 4.5 + 3);
}

// Forward of a micro-batch reaches stage 1 after 1 + 0.5, its gradient stage 0 after 2 + 0.5 more,
// and the last backward follows: one micro-batch on two stages: 1 + .5 + 1 + 2 + .5 + 2.
TEST(Simulation, MessagesBetweenStagesTakeTheirTime) {
  StepParts parts = even_parts(2, 1, {});
  parts.message = seconds(0.5);
  EXPECT_DOUBLE_EQ(step_of(parts), 7);
  parts.sender_waits = false;
  EXPECT_DOUBLE_EQ(step_of(parts), 7);
}

// Of two stages the second alone is trained: the first works 4 s forward, and the second, which
// begins with what has come after 1.5 s, 4 x 3 s. No gradient goes back.
TEST(Simulation, BackwardEndsWhereTrainingBegins) {
  StepParts parts = even_parts(2, 4, {});
  parts.form.backward.end = 1;
  parts.message = seconds(0.5);
  const Simulation simulated = simulate(parts, {});
  EXPECT_DOUBLE_EQ(in_seconds(simulated.step), 1.5 + 4 * 3);
  EXPECT_DOUBLE_EQ(in_seconds(simulated.stages[0].of(Doing::forward)), 4);
  EXPECT_DOUBLE_EQ(in_seconds(simulated.stages[0].of(Doing::backward)), 0);
  EXPECT_DOUBLE_EQ(in_seconds(simulated.stages[1].of(Doing::send)), 0);
}

// Stage 0 gathers 1 s of parameters before each forward, and sends 1 s to stage 1 after it, on the
// same link:
//   gather 0-1, forward 1-2, message and second gather together 2-4, forward 4-5
// Without sharing, the second gather would end at 3 s and the second forward at 4 s.
TEST(Simulation, MessagesThatShareALinkSlowEachOther) {
  StepParts parts = even_parts(2, 2, {.order = Order::all_forward});
  parts.sender_waits = false;
  parts.message = seconds(1);
  parts.gathers_beside = true;
  parts.kinds.push_back(parts.kinds.front());
  parts.of_stage = {0, 1};
  parts.kinds[0].forward_gathers.push_back(message(1));
  const Simulation simulated = simulate(parts, {});
  std::vector<double> ends;
  for (const Slice& slice : simulated.slices) {
    if (slice.stage == 0 && slice.doing == Doing::forward) ends.push_back(in_seconds(slice.end));
  }
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_DOUBLE_EQ(ends[0], 2);
  EXPECT_DOUBLE_EQ(ends[1], 5);
  // Over another link they do not meet.
  parts.uses = {{kAxis, {{.link = 1, .part = 1}}}};
  for (const Slice& slice : simulate(parts, {}).slices) {
    if (slice.stage == 0 && slice.micro_batch == 1 && slice.doing == Doing::forward) {
      EXPECT_DOUBLE_EQ(in_seconds(slice.end), 4);
    }
  }
}

// A forward of 2 s with 1 s of messages beside its kernels takes half of the link. A gather of 1 s
// beside it takes all of the rest and more: 1.5 in all, so that both go at 2/3 of their speed. The
// gather of a second unit runs from 1 s on: done at 2.5 s, when 1 s of the first forward is left:
// 3.5 s, and the second forward, with nothing beside it, ends at 5.5 s instead of 5 s.
TEST(Simulation, MessagesThatHideBehindKernelsTakeTheirPartOfALink) {
  StepParts parts = even_parts(1, 1, {});
  StageParts& stage = parts.kinds[0];
  stage.units = 2;
  ChunkParts& chunk = stage.chunks[0];
  chunk.units = 2;
  chunk.backward.clear();
  chunk.forward = {{.unit = 0, .kernels = seconds(2)}, {.unit = 1, .kernels = seconds(2)}};
  stage.forward_gathers.push_back(message(2));
  parts.gathers_beside = true;
  EXPECT_DOUBLE_EQ(step_of(parts), 5);
  chunk.forward[0].hidden.add(kAxis, seconds(1));
  EXPECT_DOUBLE_EQ(step_of(parts), 5.5);
}

// Gathers beside work: the first is waited for, the second hides. Two units of 1 s, 0.5 s of
// gathers each: 0.5 + 1 + 1; one after the other it is 0.5 + 1 + 0.5 + 1.
TEST(Simulation, GathersRunBesideTheUnitsBefore) {
  StepParts parts = even_parts(1, 1, {});
  ChunkParts& chunk = parts.kinds[0].chunks[0];
  chunk.units = 2;
  chunk.forward.push_back({.unit = 1, .part = WorkPart::forward, .kernels = seconds(1)});
  chunk.backward.clear();
  parts.kinds[0].units = 2;
  parts.kinds[0].forward_gathers.push_back(message(1));
  parts.gathers_beside = true;
  EXPECT_DOUBLE_EQ(step_of(parts), 2.5);
  parts.gathers_beside = false;
  EXPECT_DOUBLE_EQ(step_of(parts), 3);
}

// Gradients of two units, 1 s each: that of the unit whose backward comes first hides behind the
// backward of the other, the last one stands open. 2 forwards, 2 backwards of 2 s, and 1 s.
TEST(Simulation, ReductionsRunBesideTheLastBackward) {
  StepParts parts = even_parts(1, 1, {});
  ChunkParts& chunk = parts.kinds[0].chunks[0];
  chunk.units = 2;
  chunk.forward.push_back({.unit = 1, .part = WorkPart::forward, .kernels = seconds(1)});
  chunk.backward.insert(chunk.backward.begin(),
                        {.unit = 1, .part = WorkPart::backward, .kernels = seconds(2)});
  parts.kinds[0].units = 2;
  parts.kinds[0].reduce.push_back(message(2));
  parts.reductions_beside = true;
  EXPECT_DOUBLE_EQ(step_of(parts), 7);
  parts.reductions_beside = false;
  EXPECT_DOUBLE_EQ(step_of(parts), 8);
}

// All stages update together after the slowest, 1 s; then 0.5 s of parameters and 0.25 s of the
// host: 11 x 3 + 1.75.
TEST(Simulation, AStepEndsForAllStagesTogether) {
  StepParts parts = even_parts(4, 8, {});
  parts.kinds[0].update = seconds(1);
  parts.kinds[0].after.add(kAxis, seconds(0.5));
  parts.host_per_step = seconds(0.25);
  EXPECT_DOUBLE_EQ(step_of(parts), 34.75);
}

// Slices of one lane never overlap, whatever the schedule, and those that are left out are counted.
TEST(Simulation, SlicesOfALaneFollowEachOther) {
  for (const Schedule& schedule :
       {Schedule{}, Schedule{.order = Order::all_forward},
        Schedule{.hosting = Hosting::loop, .order = Order::interleaved, .chunks = 2},
        Schedule{.order = Order::split_single},
        Schedule{.hosting = Hosting::vee, .order = Order::split_vee, .chunks = 2},
        Schedule{
            .hosting = Hosting::bidirectional, .order = Order::bidirectional_split, .chunks = 2}}) {
    StepParts parts = even_parts(4, 8, schedule);
    parts.message = seconds(0.25);
    parts.gathers_beside = true;
    parts.reductions_beside = true;
    parts.sender_waits = false;
    for (StageParts& kind : parts.kinds) kind.message_share = 0.1;
    parts.kinds[0].forward_gathers.push_back(message(0.5));
    parts.kinds[0].backward_reductions.push_back(message(0.5));
    parts.kinds[0].reduce.push_back(message(3));
    const Simulation simulated = simulate(parts, {});
    std::map<std::pair<int, Lane>, double> end;
    for (const Slice& slice : simulated.slices) {
      double& before = end[{slice.stage, slice.lane}];
      EXPECT_GE(in_seconds(slice.begin), before - 1e-9);
      EXPECT_GT(slice.end, slice.begin);
      before = in_seconds(slice.end);
    }
    const Simulation short_one = simulate(parts, {.most_slices = 10});
    EXPECT_EQ(short_one.slices.size(), 10U);
    EXPECT_EQ(static_cast<std::size_t>(short_one.left_out) + 10, simulated.slices.size());
    EXPECT_EQ(short_one.step, simulated.step);
  }
}

}  // namespace
}  // namespace placet
