#include "units/rational.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "units/error.h"

namespace placet {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

static_assert(!std::is_convertible_v<Rational, double>, "exactness is given up only by name");
static_assert(!std::is_constructible_v<Rational, Bytes>, "a fraction has no unit");

TEST(RationalTest, StandsInLowestTerms) {
  const Rational half(-4, -8);
  EXPECT_EQ(half.numerator(), 1);
  EXPECT_EQ(half.denominator(), 2);
  EXPECT_EQ(Rational(3, -6), Rational(-1, 2));
  EXPECT_EQ(Rational(0, -7), Rational(0));
}

TEST(RationalTest, ComputesExactly) {
  EXPECT_EQ(Rational(3, 8) + Rational(1, 8), Rational(1, 2));
  EXPECT_EQ(Rational(1, 3) - Rational(1, 2), Rational(-1, 6));
  EXPECT_EQ(Rational(2, 3) * Rational(3, 4), Rational(1, 2));
  EXPECT_EQ(Rational(2, 3) / Rational(-4, 3), Rational(-1, 2));
  EXPECT_EQ(2 * Rational(7, 8), Rational(7, 4));
  // 1/10 added ten times is 1, which doubles miss.
  Rational sum;
  for (int i = 0; i < 10; ++i) sum += Rational(1, 10);
  EXPECT_EQ(sum, Rational(1));
}

TEST(RationalTest, GatheringForEachUseSendsThreeHalvesOfAllReducing) {
  // Over n devices each collective moves (n-1)/n of a value: two gathers and one reduce-scatter
  // against an all-reduce, which is two.
  for (const std::int64_t n : {2, 3, 8, 1024}) {
    const Rational once(n - 1, n);
    EXPECT_EQ((once + once + once) / (2 * once), Rational(3, 2)) << n;
  }
}

TEST(RationalTest, OrdersWhereDoublesCannot) {
  // Both are 1.0 as doubles.
  EXPECT_LT(Rational(kMost - 1, kMost), Rational(1));
  EXPECT_GT(Rational(-1, 3), Rational(-1, 2));
}

TEST(RationalTest, ReducesBeforeItOverflows) {
  EXPECT_EQ(Rational(kMost, 2) * Rational(2, kMost), Rational(1));
  EXPECT_EQ(Rational(kMost, kMost - 1) - Rational(1, kMost - 1), Rational(1));
  EXPECT_EQ(Rational(std::numeric_limits<std::int64_t>::min(), 2).numerator(), -(kMost / 2) - 1);
}

TEST(RationalTest, ThrowsWhereNothingHelps) {
  EXPECT_THROW(Rational(kMost) + Rational(1), InputError);
  EXPECT_THROW(Rational(1, kMost) * Rational(1, kMost), InputError);
  EXPECT_THROW(Rational(1, 0), InternalError);
  EXPECT_THROW(Rational(1) / Rational(0), InternalError);
}

TEST(RationalTest, PrintsAsPeopleWriteIt) {
  EXPECT_EQ(to_string(Rational(6, 4)), "3/2");
  EXPECT_EQ(to_string(Rational(-8, 4)), "-2");
  EXPECT_DOUBLE_EQ(in_double(Rational(3, 2)), 1.5);
}

TEST(PartTest, IsExactOrRoundedUpInTheOpen) {
  EXPECT_EQ(exact_part(bytes(80), Rational(7, 8)), bytes(70));
  EXPECT_THROW(exact_part(bytes(81), Rational(7, 8)), InternalError);
  EXPECT_EQ(part_rounded_up(bytes(10), Rational(1, 4)), bytes(3));  // 2.5
  EXPECT_EQ(part_rounded_up(bytes(8), Rational(1, 4)), bytes(2));
  EXPECT_EQ(part_rounded_up(bytes(-10), Rational(1, 4)), bytes(-2));  // -2.5
  // The product passes 2^63 on the way.
  EXPECT_EQ(part_rounded_up(bytes(kMost), Rational(kMost - 1, kMost)), bytes(kMost - 1));
}

TEST(PartTest, RatiosOfQuantities) {
  EXPECT_EQ(exact_ratio(gibibytes(3), gibibytes(2)), Rational(3, 2));
  EXPECT_EQ(exact_ratio(count(10), count(4)), Rational(5, 2));
}

// 2^62 x 2^62 / 3 = 2^124 / 3.
TEST(PartTest, TextOfPartsThatPassWhatNumbersHold) {
  constexpr std::int64_t kHalf = std::int64_t{1} << 62;
  EXPECT_EQ(text_of_part(kHalf, Rational(kHalf, 3)), "21267647932558653966460912964485513216/3");
  EXPECT_EQ(text_of_part(6, Rational(2, 3)), "4");
  EXPECT_EQ(text_of_part(-7, Rational(1, 2)), "-7/2");
  EXPECT_EQ(text_of_part(0, Rational(1, 2)), "0");
}

}  // namespace
}  // namespace placet
