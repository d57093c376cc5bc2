#include "schedule/moments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace placet {
namespace {

const Schedule kLagging{.name = "lagging", .order = Order::split_single};
const Schedule kVee{.name = "vee", .hosting = Hosting::vee, .order = Order::split_vee, .chunks = 2};
const Schedule kBothEnds{.name = "both ends",
                         .hosting = Hosting::bidirectional,
                         .order = Order::bidirectional_split,
                         .chunks = 2};
const Schedule kFolded{
    .name = "folded", .hosting = Hosting::vee, .order = Order::bidirectional_split, .chunks = 2};
const Schedule kLoop{
    .name = "loop", .hosting = Hosting::loop, .order = Order::interleaved, .chunks = 3};

using Beside = std::tuple<Work::Kind, std::int64_t, std::vector<std::int64_t>>;
using Orders = std::vector<std::vector<Work>>;
using Input = std::tuple<bool, std::int64_t, std::int64_t>;  // forward, chunk, micro-batch

bool is_below(const Beside& a, const Beside& b) {
  return std::get<0>(a) == std::get<0>(b) && std::get<1>(a) == std::get<1>(b) &&
         std::ranges::equal(std::get<2>(a), std::get<2>(b), std::ranges::less_equal());
}

// The inputs that pieces of work of device `from` make for device `to`, in their order.
std::vector<Input> made_for(const Schedule& schedule, const Orders& orders, std::int64_t from,
                            std::int64_t to, std::size_t pieces) {
  const auto degree = static_cast<std::int64_t>(orders.size());
  std::vector<Input> out;
  for (std::size_t i = 0; i < pieces; ++i) {
    const Work& work = orders[static_cast<std::size_t>(from)][i];
    if (work.kind == Work::Kind::backward_weight) continue;
    const bool forward = work.kind == Work::Kind::forward;
    const std::int64_t next = hosted_stage(schedule, degree, from, work.chunk) + (forward ? 1 : -1);
    for (std::int64_t c = 0; c < schedule.chunks; ++c) {
      const bool same_way = schedule.hosting != Hosting::bidirectional || c == work.chunk;
      if (same_way && hosted_stage(schedule, degree, to, c) == next) {
        out.emplace_back(forward, c, work.micro_batch);
      }
    }
  }
  return out;
}

// Inputs that are there while the i-th piece of a device runs, without its own: of each sender all
// up to the last one needed so far, and what the device made for itself.
std::int64_t arrived(const Schedule& schedule, const Orders& orders, std::int64_t device,
                     std::size_t i) {
  const std::vector<Work>& order = orders[static_cast<std::size_t>(device)];
  std::int64_t sum = 0;
  for (std::int64_t from = 0; from < static_cast<std::int64_t>(orders.size()); ++from) {
    const std::size_t pieces = from == device ? i : orders[static_cast<std::size_t>(from)].size();
    const std::vector<Input> sent = made_for(schedule, orders, from, device, pieces);
    std::int64_t there = from == device ? static_cast<std::int64_t>(sent.size()) : 0;
    std::int64_t needed = 0;
    for (std::size_t j = 0; j <= i; ++j) {
      if (order[j].kind == Work::Kind::backward_weight) continue;
      const Input own(order[j].kind == Work::Kind::forward, order[j].chunk, order[j].micro_batch);
      const auto found = std::ranges::find(sent, own);
      if (found == sent.end()) continue;
      ++needed;
      there = std::max<std::int64_t>(there, found - sent.begin() + 1);
    }
    sum += there - needed;
  }
  return sum;
}

// Every moment of the whole order, from the micro-batches that each piece finds begun and not done;
// then those below another are taken out.
std::set<Beside> counted(const Schedule& schedule, const Orders& orders, std::int64_t device) {
  std::set<Beside> all;
  const std::vector<Work>& order = orders[static_cast<std::size_t>(device)];
  const auto chunks = static_cast<std::size_t>(schedule.chunks);
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::set<std::pair<std::int64_t, std::int64_t>> held;
    std::set<std::pair<std::int64_t, std::int64_t>> waiting;
    for (std::size_t j = 0; j < i; ++j) {
      const std::pair own(order[j].chunk, order[j].micro_batch);
      if (order[j].kind == Work::Kind::forward) held.insert(own);
      if (order[j].kind != Work::Kind::forward) held.erase(own);
      if (order[j].kind == Work::Kind::backward_input) waiting.insert(own);
      if (order[j].kind == Work::Kind::backward_weight) waiting.erase(own);
    }
    held.erase({order[i].chunk, order[i].micro_batch});
    waiting.erase({order[i].chunk, order[i].micro_batch});
    std::vector<std::int64_t> beside(2 * chunks, 0);
    for (const auto& own : held) ++beside[static_cast<std::size_t>(own.first)];
    for (const auto& own : waiting) ++beside[chunks + static_cast<std::size_t>(own.first)];
    beside.push_back(arrived(schedule, orders, device, i));
    all.emplace(order[i].kind, order[i].chunk, beside);
  }
  std::set<Beside> most;
  for (const Beside& one : all) {
    const bool below = std::ranges::any_of(
        all, [&](const Beside& other) { return one != other && is_below(one, other); });
    if (!below) most.insert(one);
  }
  return most;
}

std::set<Beside> told(const std::vector<WorkMoment>& moments) {
  std::set<Beside> out;
  for (const WorkMoment& moment : moments) {
    std::vector<std::int64_t> beside = moment.held;
    beside.insert(beside.end(), moment.waiting.begin(), moment.waiting.end());
    beside.push_back(moment.arrived);
    out.emplace(moment.kind, moment.chunk, beside);
  }
  EXPECT_EQ(out.size(), moments.size());
  return out;
}

TEST(MomentsTest, FewMicroBatchesShowTheFullestMomentsOfMany) {
  for (const Schedule& schedule : {kLagging, kVee, kBothEnds, kFolded, kLoop}) {
    for (std::int64_t degree = 1; degree <= 5; ++degree) {
      for (std::int64_t m = 1; m <= 2 * degree + 6; ++m) {
        Orders orders;
        for (std::int64_t d = 0; d < degree; ++d) {
          orders.push_back(order_of_work(schedule, degree, d, m));
        }
        const auto all = fullest_moments(schedule, degree, m);
        for (std::int64_t d = 0; d < degree; ++d) {
          EXPECT_EQ(told(all[static_cast<std::size_t>(d)]), counted(schedule, orders, d))
              << schedule.name << ", device " << d << " of " << degree << ", m " << m;
        }
      }
    }
  }
}

// Device 1 of 2: F0 I0 F1 I1 W0 F2 I2 W1 F3 I3 W2 W3. From the second forward on one waits.
TEST(MomentsTest, OfPartsThatLagOneBehind) {
  const std::vector<WorkMoment> expected = {
      {.kind = Work::Kind::forward, .held = {0}, .waiting = {1}},
      {.kind = Work::Kind::backward_input, .held = {0}, .waiting = {1}},
      {.kind = Work::Kind::backward_weight, .held = {0}, .waiting = {1}}};
  EXPECT_EQ(fullest_moments(kLagging, 2, 4)[1], expected);
}

// Two micro-batches over a vee of two devices. Device 1 turns it: F0 of chunk 0, F0 of chunk 1, F1
// of both, then backward of micro-batch 0 through chunk 1, in two parts. While the second runs, the
// gradient that the first has made is there for chunk 0.
TEST(MomentsTest, WhatIsHandedToTheNextChunkWaits) {
  const std::vector<WorkMoment> all = fullest_moments(kVee, 2, 2)[1];
  const WorkMoment expected{.kind = Work::Kind::backward_weight,
                            .chunk = 1,
                            .held = {2, 1},
                            .waiting = {0, 0},
                            .arrived = 1};
  EXPECT_NE(std::ranges::find(all, expected), all.end());
}

}  // namespace
}  // namespace placet
