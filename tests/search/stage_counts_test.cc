#include "search/stage_counts.h"

#include <gtest/gtest.h>

namespace placet {
namespace {

// Blocks 3..7 of a device.
constexpr KindRun kRun = {.count = 5, .ordinal = 3, .is_block = true, .may_recompute = true};

TEST(StageCounts, CountsWhatIsRecomputed) {
  EXPECT_EQ(recomputed_of(kRun, {.kind = Recompute::Kind::none}), 0);
  EXPECT_EQ(recomputed_of(kRun, {.kind = Recompute::Kind::full}), 5);
  // Multiples of 2 among 3..7: 4, 6.
  EXPECT_EQ(recomputed_of(kRun, {.kind = Recompute::Kind::every, .count = 2}), 2);
  EXPECT_EQ(recomputed_of(kRun, {.kind = Recompute::Kind::every, .count = 3}), 2);  // 3, 6
  // The first five of the device are 0..4: 3 and 4 of these.
  EXPECT_EQ(recomputed_of(kRun, {.kind = Recompute::Kind::first, .count = 5}), 2);
  EXPECT_EQ(recomputed_of(kRun, {.kind = Recompute::Kind::first, .count = 2}), 0);
  EXPECT_EQ(recomputed_of(kRun, {.kind = Recompute::Kind::first, .count = 99}), 5);
}

TEST(StageCounts, LeavesAloneWhatIsNeverRecomputed) {
  const KindRun head{.count = 1};
  EXPECT_EQ(recomputed_of(head, {.kind = Recompute::Kind::full}), 0);
}

}  // namespace
}  // namespace placet
