#include "units/shares.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "units/error.h"

namespace placet {
namespace {

// 10 over 4 owners: 3 3 2 2, beginning at 0 3 6 8.
static_assert(largest_share(10, 4) == 3);
static_assert(share_of(10, 4, 0) == 3 && share_of(10, 4, 1) == 3);
static_assert(share_of(10, 4, 2) == 2 && share_of(10, 4, 3) == 2);
static_assert(share_begin(10, 4, 1) == 3 && share_begin(10, 4, 2) == 6 &&
              share_begin(10, 4, 3) == 8);
static_assert(largest_share(bytes(10), 4) == bytes(3) && share_of(count(10), 4, 3) == count(2));

TEST(SharesTest, CoverTheWholeWithoutGapOrOverlap) {
  for (std::int64_t total = 0; total <= 40; ++total) {
    for (std::int64_t n = 1; n <= 12; ++n) {
      std::int64_t next = 0;
      for (std::int64_t index = 0; index < n; ++index) {
        EXPECT_EQ(share_begin(total, n, index), next) << total << " over " << n;
        EXPECT_LE(share_of(total, n, index), largest_share(total, n));
        EXPECT_GE(share_of(total, n, index) + 1, largest_share(total, n));
        next += share_of(total, n, index);
      }
      EXPECT_EQ(next, total) << total << " over " << n;
      EXPECT_EQ(share_of(total, n, 0), largest_share(total, n)) << "the first holds the most";
    }
  }
}

TEST(SharesTest, FewerUnitsThanOwnersLeaveSomeEmpty) {
  EXPECT_EQ(share_of(2, 4, 1), 1);
  EXPECT_EQ(share_of(2, 4, 2), 0);
  EXPECT_EQ(share_begin(2, 4, 3), 2);
  EXPECT_EQ(largest_share(0, 4), 0);
}

TEST(SharesTest, DoNotOverflowAtTheEndOfTheRange) {
  EXPECT_EQ(largest_share(INT64_MAX, 2), std::int64_t{1} << 62);
  EXPECT_EQ(share_begin(INT64_MAX, INT64_MAX, INT64_MAX - 1), INT64_MAX - 1);
}

TEST(SharesTest, NonsenseIsOurOwnFault) {
  EXPECT_THROW((void)largest_share(-1, 4), InternalError);
  EXPECT_THROW((void)share_of(10, 0, 0), InternalError);
  EXPECT_THROW((void)share_of(10, 4, 4), InternalError);
  EXPECT_THROW((void)share_begin(10, 4, -1), InternalError);
}

}  // namespace
}  // namespace placet
