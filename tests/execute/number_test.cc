#include "execute/number.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace placet::execute {
namespace {

Number number(double x) {
  bool fits = true;
  const Number n = number_of_real(x, fits);
  EXPECT_TRUE(fits) << x;
  return n;
}

TEST(NumberTest, HoldsRealsAsMultiplesOfTwoToMinus80) {
  EXPECT_EQ(number(1).high, Wide{1} << 80);
  EXPECT_EQ(number(-0.5).high, -(Wide{1} << 79));
  // 3 2^-82 lies between the multiples 0 and 1 of 2^-80, nearer to 1.
  EXPECT_EQ(number(std::ldexp(3, -82)).high, 1);
}

TEST(NumberTest, RefusesWhatIsTooLargeOrNoNumber) {
  for (const double x : std::vector<double>{std::ldexp(1, 46), -std::ldexp(1, 50), INFINITY, NAN}) {
    bool fits = true;
    number_of_real(x, fits);
    EXPECT_FALSE(fits) << x;
  }
}

TEST(NumberTest, IsReadAsTheNearestOf24Bits) {
  for (const double x : {1.0 / 3, -2.0 / 7, 1e-9, 12345.678, std::ldexp(1.1, 40), 0.0}) {
    EXPECT_EQ(rounded(number(x)), static_cast<float>(x)) << x;
  }
  // 1 + 2^-24 is a tie, to the even one; any bit more, however small, and it is none.
  Number tie = number(1 + std::ldexp(1, -24));
  EXPECT_EQ(rounded(tie), 1.0F);
  tie.parts[3] = 1;
  EXPECT_EQ(rounded(tie), 1 + std::ldexp(1.0F, -23));
}

TEST(NumberTest, IsItsOwnNegativesNegative) {
  Number x = number(1.0 / 3);
  x.parts = {5, 0, 7, 1};
  Number sum = x;
  EXPECT_TRUE(add_to(sum, negative(x)));
  EXPECT_EQ(sum, Number{});
  EXPECT_EQ(negative(negative(x)), x);
}

/// 3,000 products of 24-bit numbers, some of which nearly cancel.
std::vector<double> products(unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> mantissa(-1, 1);
  std::uniform_int_distribution<int> exponent(-30, 6);
  const auto single = [&] {
    return static_cast<double>(static_cast<float>(std::ldexp(mantissa(random), exponent(random))));
  };
  std::vector<double> all(3000);
  for (double& p : all) p = single() * single();
  return all;
}

Number sum_of(const std::vector<double>& terms, std::size_t begin, std::size_t end) {
  Number sum;
  Bins bins;
  for (std::size_t k = begin; k < end; k += 4) {
    Bins::Four four{};
    for (std::size_t lane = 0; lane < 4 && k + lane < end; ++lane) four[lane] = terms[k + lane];
    bins.add(four);
  }
  EXPECT_TRUE(bins.collect(sum));
  return sum;
}

TEST(BinsTest, AddInAnyPartsAndOrderToTheSameBits) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::vector<double> terms = products(seed);
    const Number whole = sum_of(terms, 0, terms.size());
    for (const std::size_t cut : {1U, 7U, 1000U, 2999U}) {
      Number parts = sum_of(terms, cut, terms.size());
      EXPECT_TRUE(add_to(parts, sum_of(terms, 0, cut)));
      EXPECT_EQ(parts, whole) << seed << " " << cut;
    }
    std::reverse(terms.begin(), terms.end());
    EXPECT_EQ(sum_of(terms, 0, terms.size()), whole) << seed;
  }
}

// Each product is a multiple of 2^-80 after rounding, and the sum is that of these.
TEST(BinsTest, AddWhatEachProductIsByItself) {
  const std::vector<double> terms = products(99);
  Number sum;
  for (const double p : terms) {
    // Taken apart into halves, which are exact.
    const double coarse = static_cast<double>(static_cast<float>(p));
    Number one = number(coarse);
    EXPECT_TRUE(add_to(one, number(p - coarse)));
    EXPECT_TRUE(add_to(sum, one));
  }
  const Number found = sum_of(terms, 0, terms.size());
  // Two roundings in place of one: at most one unit for each product.
  const Wide apart = found.high - sum.high;
  EXPECT_LT(apart < 0 ? -apart : apart, Wide{3000});
}

TEST(ExactProductTest, IsLinearInWhatItReads) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-4, 4);
  for (int k = 0; k < 2000; ++k) {
    Number a = number(uniform(random) * 1e-3);
    Number b = number(uniform(random));
    const double f = uniform(random);
    const double g = uniform(random) * 1e-4;
    // Twice, so that parts below 2^-80 are multiplied too.
    Number fa;
    Number fb;
    ASSERT_TRUE(add_exact_product(fa, a, f) && add_exact_product(fb, b, f));
    Number apart;
    ASSERT_TRUE(add_exact_product(apart, fa, g) && add_exact_product(apart, fb, g));
    ASSERT_TRUE(add_to(a, b));
    Number both;
    ASSERT_TRUE(add_exact_product(both, a, f));
    Number together;
    ASSERT_TRUE(add_exact_product(together, both, g));
    ASSERT_EQ(apart, together) << k;
    const double real = static_cast<double>(rounded(a)) *
                        static_cast<double>(static_cast<float>(f)) *
                        static_cast<double>(static_cast<float>(g));
    ASSERT_NEAR(static_cast<double>(rounded(together)), real, std::fabs(real) * 1e-6 + 1e-17);
  }
}

// 1 by 2^-60 five times takes 80 + 5 60 = 380 bits behind the point, and there are 320.
TEST(ExactProductTest, SaysWhereNoPartIsLeft) {
  Number x{.high = 1};
  for (int k = 0; k < 4; ++k) {
    Number next;
    ASSERT_TRUE(add_exact_product(next, x, std::ldexp(1, -60)));
    x = next;
  }
  EXPECT_EQ(x.parts[3], 1);
  Number last;
  EXPECT_FALSE(add_exact_product(last, x, std::ldexp(1, -60)));
}

}  // namespace
}  // namespace placet::execute
