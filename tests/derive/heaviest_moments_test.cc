// The heaviest moments of interleaved orders, against all moments counted along the whole order.
#include "derive/heaviest_moments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <utility>

namespace placet {
namespace {

Schedule looped(std::int64_t chunks, std::int64_t group = 0) {
  return {.name = "loop",
          .hosting = Hosting::loop,
          .order = Order::interleaved,
          .chunks = chunks,
          .group = group};
}

using Key = std::tuple<Work::Kind, std::int64_t, std::vector<bool>>;

Key key_of(Work::Kind kind, std::int64_t chunk, const std::vector<std::int64_t>& held) {
  std::vector<bool> others;
  for (std::size_t c = 0; c < held.size(); ++c) {
    others.push_back(static_cast<std::int64_t>(c) != chunk && held[c] > 0);
  }
  return {kind, chunk, others};
}

std::int64_t bytes_of(const std::vector<std::int64_t>& held,
                      const std::vector<std::int64_t>& kept) {
  std::int64_t sum = 0;
  for (std::size_t c = 0; c < held.size(); ++c) sum += held[c] * kept[c];
  return sum;
}

using Moment = std::pair<Key, std::vector<std::int64_t>>;

/// Piece by piece: the first moment of each key with most bytes, in the order of work.
std::vector<Moment> counted(const std::vector<Work>& order, const std::vector<std::int64_t>& kept) {
  std::vector<Moment> out;
  std::vector<std::int64_t> held(kept.size(), 0);
  for (const Work& work : order) {
    std::int64_t& own = held[static_cast<std::size_t>(work.chunk)];
    if (work.kind == Work::Kind::backward) --own;
    const Key key = key_of(work.kind, work.chunk, held);
    const auto known = std::ranges::find(out, key, &Moment::first);
    const bool is_first = known == out.end();
    if (is_first || bytes_of(held, kept) > bytes_of(known->second, kept)) {
      if (!is_first) out.erase(known);
      out.emplace_back(key, held);
    }
    if (work.kind == Work::Kind::forward) ++own;
  }
  return out;
}

TEST(HeaviestMoments, AreThoseOfTheWholeOrder) {
  std::mt19937 random(7);
  const auto pick = [&](std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random() % static_cast<unsigned>(most - least + 1));
  };
  for (int i = 0; i < 3'000; ++i) {
    const std::int64_t degree = pick(3, 7);
    const std::int64_t chunks = pick(1, 4);
    const Schedule schedule = looped(chunks, pick(0, 2) == 0 ? pick(1, 10) : 0);
    const std::int64_t m = pick(1, 60);
    std::vector<std::int64_t> kept;
    for (std::int64_t c = 0; c < chunks; ++c) kept.push_back(pick(0, 3));
    const std::int64_t device = pick(0, degree - 1);
    const auto all = counted(order_of_work(schedule, degree, device, m), kept);
    std::vector<Moment> told;
    for (const WorkMoment& one : heaviest_moments(schedule, degree, device, m, kept)) {
      EXPECT_EQ(one.arrived, 0);
      told.emplace_back(key_of(one.kind, one.chunk, one.held), one.held);
    }
    EXPECT_EQ(told, all) << "degree " << degree << ", device " << device << ", " << chunks
                         << " chunks, groups of " << schedule.group << ", m " << m;
  }
}

// What is sent arrives in the order in which it is used.
TEST(HeaviestMoments, NothingWaitsInALoop) {
  for (std::int64_t degree = 3; degree <= 6; ++degree) {
    for (std::int64_t m = 1; m <= 3 * degree; ++m) {
      for (const auto& device : fullest_moments(looped(3), degree, m)) {
        for (const WorkMoment& one : device) EXPECT_EQ(one.arrived, 0);
      }
    }
  }
  EXPECT_TRUE(arrives_in_turn(looped(3), 3));
  EXPECT_FALSE(arrives_in_turn(looped(3), 2));  // one queue for values and gradients
}

// Device 3 of 4, two chunks, m = 4: chunk 0 forward four times, chunk 1 forward and back in turn,
// chunk 0 back. One micro-batch keeps 5 bytes of chunk 0 and 7 of chunk 1.
TEST(HeaviestMoments, OfTheLastDevice) {
  const std::vector<WorkMoment> expected = {
      {.kind = Work::Kind::forward, .chunk = 0, .held = {3, 0}, .waiting = {0, 0}},
      {.kind = Work::Kind::forward, .chunk = 1, .held = {4, 0}, .waiting = {0, 0}},
      {.kind = Work::Kind::backward, .chunk = 1, .held = {4, 0}, .waiting = {0, 0}},
      {.kind = Work::Kind::backward, .chunk = 0, .held = {3, 0}, .waiting = {0, 0}}};
  EXPECT_EQ(heaviest_moments(looped(2), 4, 3, 4, {5, 7}), expected);
}

}  // namespace
}  // namespace placet
