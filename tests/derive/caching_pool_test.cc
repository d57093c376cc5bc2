#include "derive/caching_pool.h"

#include <gtest/gtest.h>

namespace placet {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

TEST(CachingPool, RoundsLargeRequestsToTwoMebibytes) {
  DeviceRoom room;
  CachingPool pool(false, room);
  pool.allocate(11 * kMiB + 1);
  EXPECT_EQ(room.peak_reserved, 12 * kMiB);
  EXPECT_EQ(room.alive, 11 * kMiB + 512);
}

TEST(CachingPool, ServesMiddleRequestsFromSegmentsOfTwentyMebibytes) {
  DeviceRoom room;
  CachingPool pool(false, room);
  pool.allocate(3 * kMiB);
  pool.allocate(5 * kMiB);
  EXPECT_EQ(room.peak_reserved, 20 * kMiB);
}

TEST(CachingPool, ServesSmallRequestsFromSegmentsOfTwoMebibytes) {
  DeviceRoom room;
  CachingPool pool(false, room);
  for (int i = 0; i < 4; ++i) pool.allocate(kMiB / 2);
  EXPECT_EQ(room.peak_reserved, 2 * kMiB);
  pool.allocate(1);
  EXPECT_EQ(room.peak_reserved, 4 * kMiB);
}

// 30 MiB freed; 28 fit into it and leave a block of 2; 3 do not fit into that.
TEST(CachingPool, UsesTheRestOfASplitBlock) {
  DeviceRoom room;
  CachingPool pool(false, room);
  const auto first = pool.allocate(30 * kMiB);
  pool.release(first);
  pool.allocate(28 * kMiB);
  EXPECT_EQ(room.peak_reserved, 30 * kMiB);
  pool.allocate(2 * kMiB);
  EXPECT_EQ(room.peak_reserved, 30 * kMiB);
  pool.allocate(3 * kMiB);
  EXPECT_EQ(room.peak_reserved, 50 * kMiB);
}

// A rest of 1 MiB or less is not split off: the whole block serves the request.
TEST(CachingPool, KeepsASmallRestWithItsBlock) {
  DeviceRoom room;
  CachingPool pool(false, room);
  pool.release(pool.allocate(30 * kMiB));
  pool.allocate(29 * kMiB);
  pool.allocate(kMiB);  // a small request, of another pool
  EXPECT_EQ(room.peak_reserved, 32 * kMiB);
}

TEST(CachingPool, MergesFreeNeighboursOfOneSegment) {
  DeviceRoom room;
  CachingPool pool(false, room);
  pool.release(pool.allocate(40 * kMiB));
  const auto a = pool.allocate(20 * kMiB);
  const auto b = pool.allocate(20 * kMiB);
  pool.release(a);
  pool.release(b);
  pool.allocate(40 * kMiB);
  EXPECT_EQ(room.peak_reserved, 40 * kMiB);
}

TEST(CachingPool, DoesNotMergeAcrossSegments) {
  DeviceRoom room;
  CachingPool pool(false, room);
  const auto a = pool.allocate(20 * kMiB);
  const auto b = pool.allocate(20 * kMiB);
  pool.release(a);
  pool.release(b);
  pool.allocate(40 * kMiB);
  EXPECT_EQ(room.peak_reserved, 80 * kMiB);
}

TEST(CachingPool, AnExpandableSegmentGrowsByWhatIsMissing) {
  DeviceRoom room;
  CachingPool pool(true, room);
  const auto a = pool.allocate(20 * kMiB);
  const auto b = pool.allocate(20 * kMiB);
  pool.release(a);
  pool.release(b);
  pool.allocate(44 * kMiB);
  EXPECT_EQ(room.peak_reserved, 44 * kMiB);
}

// At its limit the pool gives free segments back before it grows: 30 and 40 are not held together.
TEST(CachingPool, GivesFreeSegmentsBackAtItsLimit) {
  DeviceRoom room;
  CachingPool pool(false, room);
  room.limit = 50 * kMiB;
  pool.release(pool.allocate(30 * kMiB));
  EXPECT_FALSE(room.gave_back);
  pool.allocate(40 * kMiB);
  EXPECT_EQ(room.peak_reserved, 40 * kMiB);
  EXPECT_TRUE(room.gave_back);
}

// Of a growing segment the whole pages of free blocks go: of 31 MiB that follow one another, 30 in
// pages of 2; the block in use between them stays where it is.
TEST(CachingPool, GivesPagesOfAGrowingSegmentBack) {
  DeviceRoom room;
  CachingPool pool(true, room);
  const auto first = pool.allocate(31 * kMiB);
  const auto kept = pool.allocate(3 * kMiB);
  EXPECT_EQ(room.reserved, 34 * kMiB);
  pool.release(first);
  pool.give_back();
  EXPECT_EQ(room.reserved, 4 * kMiB);
  pool.release(kept);
  pool.give_back();
  EXPECT_EQ(room.reserved, 0);
}

// Two streams share the device: what one only caches goes back for the other.
TEST(CachingPool, PoolsOfOneDeviceShareItsMemory) {
  DeviceRoom room{.limit = 50 * kMiB};
  CachingPool one(false, room);
  CachingPool other(false, room);
  room.give_back = [&] {
    one.give_back();
    other.give_back();
  };
  one.release(one.allocate(30 * kMiB));
  other.allocate(40 * kMiB);
  EXPECT_EQ(room.peak_reserved, 40 * kMiB);
  EXPECT_EQ(room.peak_alive, 40 * kMiB);
}

}  // namespace
}  // namespace placet
