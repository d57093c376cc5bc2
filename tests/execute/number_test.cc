#include "execute/number.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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

/// A whole number of 768 bits in two's complement, in words of 32 bits, the lowest first.
class Whole {
 public:
  static Whole of(std::int64_t x) {
    Whole whole;
    whole.words_.fill(x < 0 ? ~std::uint32_t{0} : 0);
    whole.words_[0] = static_cast<std::uint32_t>(x);
    whole.words_[1] = static_cast<std::uint32_t>(x >> 32);
    return whole;
  }
  Whole operator+(const Whole& other) const {
    Whole sum;
    std::uint64_t carry = 0;
    for (std::size_t k = 0; k < words_.size(); ++k) {
      carry += std::uint64_t{words_[k]} + other.words_[k];
      sum.words_[k] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    return sum;
  }
  Whole doubled(int times) const {
    Whole twice = *this;
    for (int k = 0; k < times; ++k) twice = twice + twice;
    return twice;
  }
  Whole operator*(std::int64_t factor) const {
    Whole product;
    Whole power = factor < 0 ? negative() : *this;
    for (std::int64_t rest = std::abs(factor); rest > 0; rest /= 2, power = power + power) {
      if (rest % 2 == 1) product = product + power;
    }
    return product;
  }
  friend bool operator==(const Whole&, const Whole&) = default;

 private:
  // The complement and one.
  Whole negative() const {
    Whole complement = *this;
    for (std::uint32_t& word : complement.words_) word = ~word;
    return complement + of(1);
  }

  std::array<std::uint32_t, 24> words_{};
};

/// In units of 2^-320.
Whole whole_of(const Number& a) {
  Whole whole = Whole::of(static_cast<std::int64_t>(a.high >> 64)).doubled(32) +
                Whole::of(static_cast<std::int64_t>((a.high >> 32) & 0xffffffff));
  whole = whole.doubled(32) + Whole::of(static_cast<std::int64_t>(a.high & 0xffffffff));
  for (const std::int64_t part : a.parts) whole = whole.doubled(60) + Whole::of(part);
  return whole;
}

// Against plain arithmetic of whole numbers, bit by bit.
TEST(ExactProductTest, SumsAreThoseOfWholeNumbers) {
  std::mt19937_64 random(11);
  std::uniform_int_distribution<int> size(-70, 30);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int round = 0; round < 40; ++round) {
    ExactProducts products;
    Whole expected;
    for (int term = 0; term < 100; ++term) {
      Number a = number(std::ldexp(uniform(random), size(random) / 2));
      for (std::size_t k = 0; k < kParts - 1 && term % 3 != 0; ++k) {
        a.parts[k] = static_cast<std::int64_t>(random()) & kPartMask;
      }
      const float factor = static_cast<float>(std::ldexp(uniform(random), size(random)));
      products.add(a, static_cast<double>(factor));
      int exponent = 0;
      const double units = std::ldexp(std::frexp(static_cast<double>(factor), &exponent), 24);
      // In multiples of 2^-60: 24 bits and zeros, or fewer bits.
      const int zeros = std::max(exponent - 24 + 60, 0);
      const double kept = std::ldexp(units, exponent - 24 + 60 - zeros);
      expected = expected + (whole_of(a) * std::llround(kept)).doubled(zeros);
    }
    Number sum = number(uniform(random));
    expected = expected + whole_of(sum).doubled(60);
    ASSERT_TRUE(products.collect(sum)) << round;
    ASSERT_EQ(whole_of(sum).doubled(60), expected) << round;
  }
}

// A product of the last part that is a whole number of its units is held.
TEST(ExactProductTest, HoldsWhatTheLastPartHolds) {
  Number x;
  x.parts[3] = 6;
  Number half;
  ASSERT_TRUE(add_exact_product(half, x, -0.5));
  EXPECT_EQ(negative(half).parts[3], 3);
  EXPECT_FALSE(add_exact_product(half, x, 0.25));
}

TEST(ExactProductTest, SaysWhereASumIsTooLarge) {
  const Number most = number(0x1p45);
  for (const double factor : {0x1p10, -0x1p30, 0x1p70, -0x1p120}) {
    ExactProducts products;
    for (int term = 0; term < 200; ++term) products.add(most, factor);
    Number sum;
    EXPECT_FALSE(products.collect(sum)) << factor;
  }
  ExactProducts cancel;
  for (int term = 0; term < 200; ++term) cancel.add(most, term % 2 == 0 ? 1 : -1);
  Number sum = number(3);
  EXPECT_TRUE(cancel.collect(sum));
  EXPECT_EQ(sum, number(3));
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
