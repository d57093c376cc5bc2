#include "derive/caching_pool.h"

#include <gtest/gtest.h>

namespace placet {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

TEST(CachingPool, RoundsLargeRequestsToTwoMebibytes) {
  CachingPool pool(false);
  pool.allocate(11 * kMiB + 1);
  EXPECT_EQ(pool.reserved(), 12 * kMiB);
  EXPECT_EQ(pool.alive(), 11 * kMiB + 512);
}

TEST(CachingPool, ServesMiddleRequestsFromSegmentsOfTwentyMebibytes) {
  CachingPool pool(false);
  pool.allocate(3 * kMiB);
  pool.allocate(5 * kMiB);
  EXPECT_EQ(pool.reserved(), 20 * kMiB);
}

TEST(CachingPool, ServesSmallRequestsFromSegmentsOfTwoMebibytes) {
  CachingPool pool(false);
  for (int i = 0; i < 4; ++i) pool.allocate(kMiB / 2);
  EXPECT_EQ(pool.reserved(), 2 * kMiB);
  pool.allocate(1);
  EXPECT_EQ(pool.reserved(), 4 * kMiB);
}

// 30 MiB freed; 28 fit into it and leave a block of 2; 3 do not fit into that.
TEST(CachingPool, UsesTheRestOfASplitBlock) {
  CachingPool pool(false);
  const auto first = pool.allocate(30 * kMiB);
  pool.release(first);
  pool.allocate(28 * kMiB);
  EXPECT_EQ(pool.reserved(), 30 * kMiB);
  pool.allocate(2 * kMiB);
  EXPECT_EQ(pool.reserved(), 30 * kMiB);
  pool.allocate(3 * kMiB);
  EXPECT_EQ(pool.reserved(), 50 * kMiB);
}

// A rest of 1 MiB or less is not split off: the whole block serves the request.
TEST(CachingPool, KeepsASmallRestWithItsBlock) {
  CachingPool pool(false);
  pool.release(pool.allocate(30 * kMiB));
  pool.allocate(29 * kMiB);
  pool.allocate(kMiB);  // a small request, of another pool
  EXPECT_EQ(pool.reserved(), 32 * kMiB);
}

TEST(CachingPool, MergesFreeNeighboursOfOneSegment) {
  CachingPool pool(false);
  pool.release(pool.allocate(40 * kMiB));
  const auto a = pool.allocate(20 * kMiB);
  const auto b = pool.allocate(20 * kMiB);
  pool.release(a);
  pool.release(b);
  pool.allocate(40 * kMiB);
  EXPECT_EQ(pool.reserved(), 40 * kMiB);
}

TEST(CachingPool, DoesNotMergeAcrossSegments) {
  CachingPool pool(false);
  const auto a = pool.allocate(20 * kMiB);
  const auto b = pool.allocate(20 * kMiB);
  pool.release(a);
  pool.release(b);
  pool.allocate(40 * kMiB);
  EXPECT_EQ(pool.reserved(), 80 * kMiB);
}

TEST(CachingPool, AnExpandableSegmentGrowsByWhatIsMissing) {
  CachingPool pool(true);
  const auto a = pool.allocate(20 * kMiB);
  const auto b = pool.allocate(20 * kMiB);
  pool.release(a);
  pool.release(b);
  pool.allocate(44 * kMiB);
  EXPECT_EQ(pool.reserved(), 44 * kMiB);
}

// At its limit the pool gives free segments back before it grows: 30 and 40 are not held together.
TEST(CachingPool, GivesFreeSegmentsBackAtItsLimit) {
  CachingPool pool(false);
  pool.limit(50 * kMiB);
  pool.release(pool.allocate(30 * kMiB));
  pool.allocate(40 * kMiB);
  EXPECT_EQ(pool.reserved(), 40 * kMiB);
}

}  // namespace
}  // namespace placet
