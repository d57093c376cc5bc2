#include "schedule/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace placet {
namespace {

const Schedule kAllForward{.name = "all", .order = Order::all_forward};
const Schedule kOneOne{.name = "one", .order = Order::one_forward_one_backward};
const Schedule kSplit{.name = "split", .order = Order::split_single};
const Schedule kSplitVee{
    .name = "vee", .hosting = Hosting::vee, .order = Order::split_vee, .chunks = 2};
const Schedule kPaired{.name = "paired",
                       .hosting = Hosting::bidirectional,
                       .order = Order::bidirectional_split,
                       .chunks = 2};
const Schedule kPairedVee{
    .name = "folded", .hosting = Hosting::vee, .order = Order::bidirectional_split, .chunks = 2};

Schedule interleaved(std::int64_t chunks, std::int64_t group = 0) {
  return {.name = "interleaved",
          .hosting = Hosting::loop,
          .order = Order::interleaved,
          .chunks = chunks,
          .group = group};
}

std::vector<Schedule> all_schedules() {
  Schedule all_loop = interleaved(3);
  all_loop.order = Order::all_forward;
  Schedule all_vee = kSplitVee;
  all_vee.order = Order::all_forward;
  Schedule all_both = kPaired;
  all_both.order = Order::all_forward;
  return {kAllForward,    kOneOne,        kSplit,         kSplitVee, kPaired, kPairedVee,
          interleaved(2), interleaved(3), interleaved(4), all_loop,  all_vee, all_both};
}

std::int64_t micro_batches_of(const Schedule& schedule, std::int64_t chunk, std::int64_t m) {
  if (schedule.hosting != Hosting::bidirectional) return m;
  return chunk == 0 ? (m + 1) / 2 : m / 2;
}

// Held by the definition of the header, one piece of work after the other.
std::vector<std::int64_t> count_held(const Schedule& schedule, const std::vector<Work>& order) {
  std::vector<std::int64_t> now(static_cast<std::size_t>(schedule.chunks), 0);
  std::vector<std::int64_t> most = now;
  for (const Work& work : order) {
    std::int64_t& held = now[static_cast<std::size_t>(work.chunk)];
    if (work.kind == Work::Kind::forward) ++held;
    if (work.kind == Work::Kind::backward || work.kind == Work::Kind::backward_weight) --held;
    const auto sum = [](const auto& v) {
      return std::accumulate(v.begin(), v.end(), std::int64_t{0});
    };
    if (sum(now) > sum(most)) most = now;
  }
  return most;
}

// One piece of work in the pipeline: what, of which virtual stage, direction and micro-batch.
using Piece = std::tuple<Work::Kind, std::int64_t, std::int64_t, std::int64_t>;

// All devices of a pipeline, each working through its order as soon as what it waits for is done.
class Pipeline {
 public:
  Pipeline(const Schedule& schedule, std::int64_t degree, std::int64_t m)
      : schedule_(schedule), degree_(degree) {
    for (std::int64_t d = 0; d < degree; ++d)
      orders_.push_back(order_of_work(schedule, degree, d, m));
  }

  // The time at which all work is done with every piece taking one unit; -1: deadlock.
  std::int64_t run() {
    std::vector<std::size_t> next(orders_.size(), 0);
    std::int64_t time = 0;
    while (!all_done(next)) {
      std::vector<Piece> finished;
      for (std::size_t d = 0; d < orders_.size(); ++d) {
        if (next[d] == orders_[d].size() || !ready(d, orders_[d][next[d]])) continue;
        finished.push_back(piece(d, orders_[d][next[d]].kind, orders_[d][next[d]]));
        ++next[d];
      }
      if (finished.empty()) return -1;
      ++time;
      done_.insert(finished.begin(), finished.end());
    }
    return time;
  }

  std::size_t pieces_done() const { return done_.size(); }
  std::size_t pieces() const {
    std::size_t sum = 0;
    for (const auto& order : orders_) sum += order.size();
    return sum;
  }

 private:
  std::int64_t direction(const Work& work) const {
    return schedule_.hosting == Hosting::bidirectional ? work.chunk : 0;
  }
  std::int64_t stage(std::size_t d, const Work& work) const {
    return hosted_stage(schedule_, degree_, static_cast<std::int64_t>(d), work.chunk);
  }
  Piece piece(std::size_t d, Work::Kind kind, const Work& work) const {
    return {kind, stage(d, work), direction(work), work.micro_batch};
  }
  bool is_done(Work::Kind kind, std::int64_t stage, const Work& work) const {
    return done_.contains({kind, stage, direction(work), work.micro_batch});
  }
  bool has_backward(std::int64_t stage, const Work& work) const {
    return is_done(Work::Kind::backward, stage, work) ||
           is_done(Work::Kind::backward_input, stage, work);
  }

  bool ready(std::size_t d, const Work& work) const {
    const std::int64_t s = stage(d, work);
    switch (work.kind) {
      case Work::Kind::forward:
        return s == 0 || is_done(Work::Kind::forward, s - 1, work);
      case Work::Kind::backward:
      case Work::Kind::backward_input:
        return is_done(Work::Kind::forward, s, work) &&
               (s + 1 == virtual_stages(schedule_, degree_) || has_backward(s + 1, work));
      case Work::Kind::backward_weight:
        return is_done(Work::Kind::backward_input, s, work);
    }
    return false;
  }
  bool all_done(const std::vector<std::size_t>& next) const {
    for (std::size_t d = 0; d < next.size(); ++d) {
      if (next[d] < orders_[d].size()) return false;
    }
    return true;
  }

  const Schedule& schedule_;
  std::int64_t degree_;
  std::vector<std::vector<Work>> orders_;
  std::set<Piece> done_;
};

std::string label(const Schedule& schedule, std::int64_t degree, std::int64_t m) {
  return schedule.name + " chunks " + std::to_string(schedule.chunks) + " degree " +
         std::to_string(degree) + " m " + std::to_string(m);
}

TEST(ScheduleTest, EveryOrderRunsToItsEndWithAllDependenciesKept) {
  for (const Schedule& schedule : all_schedules()) {
    for (std::int64_t degree = 1; degree <= 8; ++degree) {
      for (std::int64_t m = 1; m <= 24; ++m) {
        Pipeline pipeline(schedule, degree, m);
        EXPECT_GE(pipeline.run(), 0) << "deadlock: " << label(schedule, degree, m);
        EXPECT_EQ(pipeline.pieces_done(), pipeline.pieces())
            << "work done twice: " << label(schedule, degree, m);
      }
    }
  }
}

TEST(ScheduleTest, EveryMicroBatchGoesForwardAndBackwardOncePerChunk) {
  for (const Schedule& schedule : all_schedules()) {
    for (std::int64_t degree = 1; degree <= 8; ++degree) {
      for (std::int64_t m = 1; m <= 24; ++m) {
        std::int64_t expected = 0;
        for (std::int64_t c = 0; c < schedule.chunks; ++c) {
          expected += micro_batches_of(schedule, c, m);
        }
        std::map<Work::Kind, std::int64_t> counts;
        for (const Work& work : order_of_work(schedule, degree, degree - 1, m)) ++counts[work.kind];
        EXPECT_EQ(counts[Work::Kind::forward], expected) << label(schedule, degree, m);
        EXPECT_EQ(counts[Work::Kind::backward] + counts[Work::Kind::backward_input], expected);
        EXPECT_EQ(counts[Work::Kind::backward_weight], counts[Work::Kind::backward_input]);
      }
    }
  }
}

TEST(ScheduleTest, ClosedFormOfHeldMicroBatchesEqualsCounting) {
  for (const Schedule& schedule : all_schedules()) {
    for (std::int64_t degree = 1; degree <= 8; ++degree) {
      for (std::int64_t m = 1; m <= 24; ++m) {
        for (std::int64_t d = 0; d < degree; ++d) {
          EXPECT_EQ(held_micro_batches(schedule, degree, d, m),
                    count_held(schedule, order_of_work(schedule, degree, d, m)))
              << label(schedule, degree, m) << " device " << d;
        }
      }
    }
  }
}

TEST(ScheduleTest, ClosedFormHoldsForGroupsOfOtherSizes) {
  for (std::int64_t group = 4; group <= 9; ++group) {
    const Schedule schedule = interleaved(3, group);
    for (std::int64_t m = 1; m <= 24; ++m) {
      for (std::int64_t d = 0; d < 4; ++d) {
        EXPECT_EQ(held_micro_batches(schedule, 4, d, m),
                  count_held(schedule, order_of_work(schedule, 4, d, m)))
            << label(schedule, 4, m) << " group " << group;
      }
      Pipeline pipeline(schedule, 4, m);
      EXPECT_GE(pipeline.run(), 0) << label(schedule, 4, m) << " group " << group;
    }
  }
}

// The header's case: device 1 of 4 runs two forwards ahead, then holds three before each backward.
TEST(ScheduleTest, OneForwardOneBackwardHoldsWhatIsBelow) {
  EXPECT_EQ(held_micro_batches(kOneOne, 4, 1, 8), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(held_micro_batches(kOneOne, 4, 0, 8), (std::vector<std::int64_t>{4}));
  EXPECT_EQ(held_micro_batches(kOneOne, 4, 3, 8), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(held_micro_batches(kOneOne, 4, 0, 2), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(held_micro_batches(kAllForward, 4, 1, 8), (std::vector<std::int64_t>{8}));
}

TEST(ScheduleTest, OrderOfOneForwardOneBackwardSpelledOut) {
  using enum Work::Kind;
  const std::vector<Work> last = {
      {forward, 0, 0}, {backward, 0, 0}, {forward, 0, 1}, {backward, 0, 1}};
  const std::vector<Work> first = {
      {forward, 0, 0}, {forward, 0, 1}, {backward, 0, 0}, {backward, 0, 1}};
  EXPECT_EQ(order_of_work(kOneOne, 2, 1, 2), last);
  EXPECT_EQ(order_of_work(kOneOne, 2, 0, 2), first);
}

// A full pipeline of p devices takes 2 m + 2 (p - 1) units when forward and backward take one each.
TEST(ScheduleTest, OneForwardOneBackwardHasTheKnownBubble) {
  EXPECT_EQ(Pipeline(kOneOne, 4, 8).run(), 2 * 8 + 2 * 3);
  EXPECT_EQ(Pipeline(kAllForward, 4, 8).run(), 2 * 8 + 2 * 3);
}

// With one unit for each of F, B and W: 3 m + (p - 1) units, a third of the bubble of 1F1B in the
// same units (arXiv:2401.10241 table 2), as each device holds at most p micro-batches.
TEST(ScheduleTest, SplitBackwardHasAThirdOfTheBubbleInTheSameMemory) {
  for (std::int64_t degree : {2, 4, 8}) {
    EXPECT_EQ(Pipeline(kSplit, degree, 3 * degree).run(), 9 * degree + degree - 1);
    std::int64_t most = 0;
    for (std::int64_t d = 0; d < degree; ++d) {
      most = std::max(most, held_micro_batches(kSplit, degree, d, 3 * degree)[0]);
    }
    EXPECT_EQ(most, held_micro_batches(kOneOne, degree, 0, 3 * degree)[0]);
  }
}

// ZB-V holds 2p halves of a micro-batch on every device, the p of 1F1B's first one; with equal
// times every device works without a pause: 6 m pieces, and p - 1 units until the last device
// starts.
TEST(ScheduleTest, VeeOfSplitBackwardsHoldsTheMemoryOfOneForwardOneBackward) {
  for (std::int64_t degree : {2, 4, 8}) {
    for (std::int64_t d = 0; d < degree; ++d) {
      const auto held = held_micro_batches(kSplitVee, degree, d, 3 * degree);
      EXPECT_EQ(held[0] + held[1], 2 * degree);
      EXPECT_EQ(held[1], d + 1);
    }
    EXPECT_EQ(Pipeline(kSplitVee, degree, 3 * degree).run(), 6 * 3 * degree + degree - 1);
  }
}

// arXiv:2412.19437 table 2: parameters twice, activations of PP + 1 micro-batches.
TEST(ScheduleTest, PairedDirectionsHoldOneMicroBatchMoreThanTheDegree) {
  for (std::int64_t degree : {2, 4, 6, 8}) {
    std::vector<std::int64_t> hosts(static_cast<std::size_t>(degree), 0);
    for (std::int64_t d = 0; d < degree; ++d) {
      const auto held = held_micro_batches(kPaired, degree, d, 4 * degree);
      EXPECT_EQ(held[0] + held[1], degree + 1) << "device " << d << " of " << degree;
      for (std::int64_t c : {0, 1})
        ++hosts[static_cast<std::size_t>(hosted_stage(kPaired, degree, d, c))];
    }
    for (std::int64_t count : hosts) EXPECT_EQ(count, 2) << "every stage is hosted twice";
  }
  // Folded into a vee: 2p + 1 halves.
  const auto folded = held_micro_batches(kPairedVee, 4, 1, 16);
  EXPECT_EQ(folded[0] + folded[1], 9);
}

// Interleaved over 4 devices, 2 chunks, m = 8: device 0 runs 2*3 + 4 = 10 forwards ahead and one
// more: chunk 0 of 0..3, chunk 1 of 0..3, chunk 0 of 4..6.
TEST(ScheduleTest, InterleavedHoldsMoreOfTheEarlierChunks) {
  EXPECT_EQ(held_micro_batches(interleaved(2), 4, 0, 8), (std::vector<std::int64_t>{7, 4}));
  EXPECT_EQ(held_micro_batches(interleaved(2), 4, 3, 8), (std::vector<std::int64_t>{4, 1}));
}

TEST(ScheduleTest, StagesAreHostedOnceOrTwice) {
  EXPECT_EQ(virtual_stages(kOneOne, 4), 4);
  EXPECT_EQ(virtual_stages(interleaved(3), 4), 12);
  EXPECT_EQ(virtual_stages(kSplitVee, 4), 8);
  EXPECT_EQ(virtual_stages(kPaired, 4), 4);
  EXPECT_EQ(hosted_stage(interleaved(3), 4, 1, 2), 9);
  EXPECT_EQ(hosted_stage(kSplitVee, 4, 1, 1), 6);
  EXPECT_EQ(hosted_stage(kPaired, 4, 1, 1), 2);
}

TEST(ScheduleTest, AStageIsFoundWhereItIsHosted) {
  for (const Schedule& schedule : {kOneOne, interleaved(3), kSplitVee, kPaired}) {
    for (std::int64_t device = 0; device < 4; ++device) {
      for (std::int64_t chunk = 0; chunk < schedule.chunks; ++chunk) {
        const std::int64_t stage = hosted_stage(schedule, 4, device, chunk);
        const StageHost host = host_of(schedule, 4, stage, chunk);
        EXPECT_EQ(host.device, device);
        EXPECT_EQ(host.chunk, chunk);
      }
    }
  }
}

TEST(ScheduleTest, EvenBlocksMakeTheFirstStagesLarger) {
  EXPECT_EQ(even_blocks(10, 4), (std::vector<std::int64_t>{3, 3, 2, 2}));
  EXPECT_EQ(even_blocks(2, 4), (std::vector<std::int64_t>{1, 1, 0, 0}));
}

TEST(ScheduleTest, NeedsAreNamedWithTheirValues) {
  EXPECT_EQ(unmet_need(interleaved(2), 8, 12),
            "interleaved needs micro-batches to be a multiple of the degree 8; 12 is not");
  EXPECT_EQ(unmet_need(interleaved(2), 8, 16), "");
  EXPECT_EQ(
      unmet_need(interleaved(2, 12), 8, 16),
      "interleaved needs at least the degree 8 micro-batches in the last group of 12; of 16, 4 "
      "remain");
  EXPECT_EQ(unmet_need(interleaved(2, 12), 8, 20), "");
  EXPECT_EQ(unmet_need(interleaved(2, 4), 8, 16),
            "interleaved needs groups of at least the degree 8 micro-batches; 4 is less");
  EXPECT_EQ(unmet_need(kPaired, 5, 10), "paired needs an even degree; 5 is odd");
  EXPECT_EQ(unmet_need(kPaired, 4, 9), "paired needs an even number of micro-batches; 9 is odd");
  EXPECT_EQ(unmet_need(kPaired, 4, 6),
            "paired needs at least twice the degree 4 in micro-batches; 6 is less");
  EXPECT_EQ(unmet_need(kOneOne, 8, 1), "");
  EXPECT_EQ(unmet_need(kSplitVee, 8, 1), "");
}

}  // namespace
}  // namespace placet
