#include "derive/pipeline_time.h"

#include <gtest/gtest.h>

#include <random>

namespace placet {
namespace {

PipelineWork work(Schedule schedule, std::int64_t degree, std::int64_t m) {
  PipelineWork out{.form = {.schedule = std::move(schedule), .degree = degree, .micro_batches = m}};
  const ChunkTime chunk{
      .forward = seconds(1), .backward = seconds(2), .backward_weight = seconds(1)};
  const auto chunks = static_cast<std::size_t>(out.form.schedule.chunks);
  out.devices.assign(static_cast<std::size_t>(degree), std::vector<ChunkTime>(chunks, chunk));
  return out;
}

// m (f + b) and p - 1 times as much of filling and draining: 4 x 3 + 3 = 15.
TEST(PipelineTime, OneForwardOneBackwardHasABubbleOfTheStagesBefore) {
  const PipelineTime time = pipeline_time(work({}, 2, 4));
  EXPECT_DOUBLE_EQ(in_seconds(time.whole), 15);
  EXPECT_DOUBLE_EQ(in_seconds(time.busy[0]), 12);
  EXPECT_DOUBLE_EQ(in_seconds(pipeline_time(work({}, 4, 8)).whole), 8 * 3 + 3 * 3);
}

TEST(PipelineTime, OneStageHasNone) {
  EXPECT_DOUBLE_EQ(in_seconds(pipeline_time(work({}, 1, 5)).whole), 15);
}

// Two chunks of half the blocks each would halve the bubble; here chunks are as long as before, so
// that the work doubles and the bubble stays: 2 x 4 x 3 + 3.
TEST(PipelineTime, InterleavingFillsWithOneChunk) {
  const Schedule schedule{.hosting = Hosting::loop, .order = Order::interleaved, .chunks = 2};
  EXPECT_DOUBLE_EQ(in_seconds(pipeline_time(work(schedule, 2, 4)).whole), 2 * 4 * 3 + 3);
}

// The sender of each of its four forwards is busy one second longer.
TEST(PipelineTime, ASenderMayWaitForItsMessage) {
  PipelineWork slow = work({}, 2, 4);
  slow.message = seconds(1);
  const PipelineTime waiting = pipeline_time(slow);
  EXPECT_DOUBLE_EQ(in_seconds(waiting.sending[0]), 4);
  EXPECT_DOUBLE_EQ(in_seconds(waiting.busy[0]), 16);
  slow.sender_waits = false;
  const PipelineTime beside = pipeline_time(slow);
  EXPECT_DOUBLE_EQ(in_seconds(beside.sending[0]), 0);
  EXPECT_LT(beside.whole, waiting.whole);
}

// Of two stages the second alone is trained. The first works 4 s forward and waits for nothing; the
// second begins after 1 s and works 4 x 3 s. Messages of 1 s that keep their senders busy: of the
// four forwards of the first stage alone.
TEST(PipelineTime, BackwardEndsWhereTrainingBegins) {
  PipelineWork part = work({}, 2, 4);
  part.form.backward.end = 1;
  const PipelineTime time = pipeline_time(part);
  EXPECT_DOUBLE_EQ(in_seconds(time.whole), 1 + 12);
  EXPECT_DOUBLE_EQ(in_seconds(time.end[0]), 4);
  EXPECT_DOUBLE_EQ(in_seconds(least_pipeline_time(part)), 1 + 12);
  part.message = seconds(1);
  const PipelineTime sent = pipeline_time(part);
  EXPECT_DOUBLE_EQ(in_seconds(sent.whole), 2 + 12);
  EXPECT_DOUBLE_EQ(in_seconds(sent.sending[0]), 4);
  EXPECT_DOUBLE_EQ(in_seconds(sent.sending[1]), 0);
  // Nothing at all is trained: 4 forwards, one stage behind the other.
  part.form.backward.end = 2;
  part.message = {};
  EXPECT_DOUBLE_EQ(in_seconds(pipeline_time(part).whole), 4 + 1);
}

// The slowest stage sets the pace: 8 micro-batches of 6 s, and one of 3 s on the way in and out.
TEST(PipelineTime, UnevenStagesWaitForTheSlowest) {
  PipelineWork uneven = work({}, 2, 8);
  uneven.devices[1][0] = {.forward = seconds(2), .backward = seconds(4), .backward_weight = {}};
  EXPECT_DOUBLE_EQ(in_seconds(pipeline_time(uneven).whole), 8 * 6 + 3);
}

// Splitting backward off lets devices fill their waiting with gradients of weights.
TEST(PipelineTime, SplitBackwardShortensTheBubble) {
  const Schedule split{.order = Order::split_single};
  EXPECT_LT(pipeline_time(work(split, 4, 8)).whole, pipeline_time(work({}, 4, 8)).whole);
}

TEST(PipelineTime, EverySchedulesOrderRunsThrough) {
  const std::vector<Schedule> schedules = {
      {.order = Order::all_forward},
      {.hosting = Hosting::vee, .order = Order::split_vee, .chunks = 2},
      {.hosting = Hosting::bidirectional, .order = Order::bidirectional_split, .chunks = 2}};
  for (const Schedule& schedule : schedules) {
    const PipelineTime time = pipeline_time(work(schedule, 4, 16));
    for (const Seconds busy : time.busy) EXPECT_LE(busy, time.whole);
    EXPECT_GT(time.whole, Seconds());
  }
}

TEST(LeastPipelineTime, IsMetByEvenStagesInTurns) {
  for (const std::int64_t degree : {1, 2, 4, 7}) {
    const PipelineWork even = work({}, degree, 9);
    EXPECT_DOUBLE_EQ(in_seconds(least_pipeline_time(even)), in_seconds(pipeline_time(even).whole));
  }
}

// Two thousand pipelines of every kind with random times: never above what the order takes.
TEST(LeastPipelineTime, IsNeverBeaten) {
  const std::vector<Schedule> schedules = {
      {},
      {.order = Order::all_forward},
      {.order = Order::split_single},
      {.hosting = Hosting::loop, .order = Order::interleaved, .chunks = 2},
      {.hosting = Hosting::vee, .order = Order::split_vee, .chunks = 2},
      {.hosting = Hosting::bidirectional, .order = Order::bidirectional_split, .chunks = 2}};
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> length(0.1, 3);
  for (int i = 0; i < 2000; ++i) {
    const Schedule& schedule = schedules[static_cast<std::size_t>(i) % schedules.size()];
    const std::int64_t degree = 2 + 2 * (i / 6 % 3);
    PipelineWork any = work(schedule, degree, degree * (2 + i % 3));
    any.form.backward.end = i % (virtual_stages(schedule, degree) + 1);
    for (auto& device : any.devices) {
      for (ChunkTime& chunk : device) {
        chunk = {.forward = seconds(length(random)), .backward = seconds(length(random))};
        chunk.backward_weight = chunk.backward / 2.0;
      }
    }
    any.message = seconds(i % 2 == 0 ? 0.0 : 0.3);
    EXPECT_LE(in_seconds(least_pipeline_time(any)), in_seconds(pipeline_time(any).whole) + 1e-9)
        << "case " << i;
  }
}

}  // namespace
}  // namespace placet
