#include "simulate/flows.h"

#include <gtest/gtest.h>

#include <vector>

namespace placet {
namespace {

using Role = FlowStart::Role;

std::vector<FlowEnd> ends_of(FlowClock& clock) {
  std::vector<FlowEnd> ends;
  while (const auto end = clock.next()) ends.push_back(*end);
  return ends;
}

FlowStart message(double work, double part) {
  return {.role = Role::lone, .device = 0, .work = work, .ports = {{.port = 0, .part = part}}};
}

TEST(FlowClock, OneFlowTakesItsWork) {
  FlowClock clock({0}, 1);
  clock.start(message(2, 1));
  const std::vector<FlowEnd> ends = ends_of(clock);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_DOUBLE_EQ(ends[0].time, 2);
  EXPECT_DOUBLE_EQ(clock.used(0), 2);
}

// 1 s and 3 s on one port: at half speed each the first ends at 2; of the second 2 s are left then,
// alone: 4. All that the port carries, one after the other, would take the same 4 s.
TEST(FlowClock, TwoMessagesOnOneLinkShareIt) {
  FlowClock clock({0}, 1);
  clock.start(message(1, 1));
  clock.start(message(3, 1));
  const std::vector<FlowEnd> ends = ends_of(clock);
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_DOUBLE_EQ(ends[0].time, 2);
  EXPECT_DOUBLE_EQ(ends[1].time, 4);
}

// Two that need half of the port each do not slow each other; a third one that needs all of it
// makes 2 in all, and everybody goes at half speed: 1 s of work by 2 s.
TEST(FlowClock, APortSlowsOnlyWhatItCannotCarry) {
  FlowClock half({0}, 1);
  half.start(message(1, 0.5));
  half.start(message(1, 0.5));
  EXPECT_DOUBLE_EQ(ends_of(half).back().time, 1);
  FlowClock full({0}, 1);
  full.start(message(1, 0.5));
  full.start(message(1, 0.5));
  full.start(message(1, 1));
  EXPECT_DOUBLE_EQ(ends_of(full).front().time, 2);
}

// A pass of 3 s, a message of 1 s beside it, share 1/2: both at 2/3, so the message ends at 1.5,
// and the pass at 3.5: half a second was lost.
TEST(FlowClock, APassAndTheMessageBesideItSlowEachOther) {
  FlowClock clock({0.5}, 1);
  clock.start({.role = Role::pass, .work = 3});
  clock.start({.role = Role::beside, .work = 1});
  const std::vector<FlowEnd> ends = ends_of(clock);
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_DOUBLE_EQ(ends[0].time, 1.5);
  EXPECT_DOUBLE_EQ(ends[1].time, 3.5);
}

// Beside a pass that does not let it in a reduction waits: 2 s and its own second, once released.
TEST(FlowClock, AReductionWaitsForPassesThatLetItIn) {
  FlowClock clock({0}, 1);
  const int pass = clock.start({.role = Role::pass, .work = 2});
  const int reduction = clock.start({.role = Role::reduction, .work = 1});
  EXPECT_EQ(clock.next()->flow, pass);
  clock.release(0);
  const auto end = clock.next();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->flow, reduction);
  EXPECT_DOUBLE_EQ(end->time, 3);
}

TEST(FlowClock, AReductionRunsBesidePassesThatLetItIn) {
  FlowClock clock({0}, 1);
  clock.start({.role = Role::pass, .work = 2, .lets_reductions = true});
  clock.start({.role = Role::reduction, .work = 1});
  EXPECT_DOUBLE_EQ(clock.next()->time, 1);
  EXPECT_DOUBLE_EQ(clock.next()->time, 2);
}

TEST(FlowClock, OfTwoThatEndAtOnceTheFirstStartedEndsFirst) {
  FlowClock clock({0, 0}, 1);
  const int first = clock.start({.role = Role::pass, .device = 0, .work = 1});
  const int second = clock.start({.role = Role::pass, .device = 1, .work = 1});
  EXPECT_EQ(clock.next()->flow, first);
  EXPECT_EQ(clock.next()->flow, second);
}

}  // namespace
}  // namespace placet
