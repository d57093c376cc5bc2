#include "search/work_flow.h"

#include <gtest/gtest.h>

#include <random>

#include "derive/pipeline_time.h"

namespace placet {
namespace {

const Schedule kInTurns = {};

// Two devices, four micro-batches of 1 s forward and 2 s backward: 4 x 3 s, and the 3 s that the
// second device's last backward is behind.
TEST(WorkFlow, PassesInTurns) {
  WorkFlow flow({.schedule = kInTurns, .degree = 2, .micro_batches = 4});
  const PieceLengths chunk = {1, 2, 1, 1};
  EXPECT_DOUBLE_EQ(flow.seconds({chunk, chunk}), 15);
  // Twice as long all over, and nothing left of the first time.
  const PieceLengths longer = {2, 4, 2, 2};
  EXPECT_DOUBLE_EQ(flow.seconds({longer, longer}), 30);
  EXPECT_DOUBLE_EQ(flow.seconds({chunk, chunk}), 15);
  // The second device's last backward ends at 13 s; what follows takes it 6 s, and the first 2 s.
  EXPECT_DOUBLE_EQ(flow.seconds({chunk, chunk}, {}, {2, 6}), 19);
}

// The same as working through the orders as the time of a step does, for lengths of any kind.
TEST(WorkFlow, TakesWhatThePipelineTakes) {
  const std::vector<Schedule> schedules = {
      kInTurns,
      {.order = Order::all_forward},
      {.hosting = Hosting::loop, .order = Order::interleaved, .chunks = 3},
      {.order = Order::split_single},
      {.hosting = Hosting::vee, .order = Order::split_vee, .chunks = 2},
      {.hosting = Hosting::bidirectional, .order = Order::bidirectional_split, .chunks = 2}};
  std::mt19937 random(7);
  std::uniform_real_distribution<double> seconds_of(0.1, 2);
  for (const Schedule& schedule : schedules) {
    for (const std::int64_t degree : {2, 4}) {
      const std::int64_t m = 16;
      PipelineWork work{.form = {.schedule = schedule, .degree = degree, .micro_batches = m}};
      std::vector<PieceLengths> lengths;
      for (std::int64_t d = 0; d < degree; ++d) {
        std::vector<ChunkTime>& chunks = work.devices.emplace_back();
        for (std::int64_t c = 0; c < schedule.chunks; ++c) {
          const double forward = seconds_of(random);
          const double inputs = seconds_of(random);
          const double weights = seconds_of(random);
          lengths.push_back({forward, inputs + weights, inputs, weights});
          chunks.push_back({.forward = seconds(forward),
                            .backward = seconds(inputs + weights),
                            .backward_weight = seconds(weights)});
        }
      }
      WorkFlow flow(work.form);
      EXPECT_NEAR(flow.seconds(lengths), in_seconds(pipeline_time(work).whole), 1e-9)
          << static_cast<int>(schedule.order) << " on " << degree;
      work.message = seconds(0.3);
      for (std::int64_t end = 0; end <= virtual_stages(schedule, degree); ++end) {
        work.form.backward.end = end;
        WorkFlow part(work.form);
        for (const bool waits : {false, true}) {
          work.sender_waits = waits;
          EXPECT_NEAR(part.seconds(lengths, {.time = 0.3, .sender_waits = waits}),
                      in_seconds(pipeline_time(work).whole), 1e-9)
              << static_cast<int>(schedule.order) << " on " << degree << ", sender waits: " << waits
              << ", backward ends in " << end;
        }
      }
    }
  }
}

}  // namespace
}  // namespace placet
