#include "algebra/field.h"

#include <gtest/gtest.h>

#include "algebra/hash.h"
#include "units/error.h"

namespace placet::algebra {
namespace {

TEST(FieldTest, ReductionFoldsAtTwoToTheSixtyOne) {
  EXPECT_EQ(reduce(kPrime), 0U);
  EXPECT_EQ(reduce(Wide{kPrime} * kPrime + 5), 5U);
  EXPECT_EQ(reduce(Wide{1} << 61U), 3153U);
  // 2^122 = 3153^2, and the largest 128-bit number is 2^6 2^122 - 1 = 64 * 9941409 - 1.
  EXPECT_EQ(reduce(~Wide{0}), 64U * 9941409U - 1);
}

TEST(FieldTest, EveryElementButZeroHasAnInverse) {
  std::vector<Element> some{1, 2, kPrime - 1, 1234567890123456789U};
  for (const Element a : some) EXPECT_EQ(multiply(a, inverse(a)), 1U);
  const std::vector<Element> before = some;
  ASSERT_TRUE(invert(some));
  for (std::size_t i = 0; i < some.size(); ++i) EXPECT_EQ(multiply(some[i], before[i]), 1U);
  std::vector<Element> with_zero{3, 0};
  EXPECT_FALSE(invert(with_zero));
  EXPECT_EQ(with_zero, (std::vector<Element>{3, 0}));
}

TEST(FieldTest, FractionsAreElements) {
  EXPECT_EQ(multiply(element_of(Rational(2, 3)), 3), 2U);
  EXPECT_EQ(add(element_of(Rational(-1, 7)), element_of(Rational(1, 7))), 0U);
  EXPECT_THROW(element_of(Rational(static_cast<std::int64_t>(kPrime))), InputError);
}

// exp takes sums modulo q to products modulo p, and the generator's group has q elements.
TEST(FieldTest, TheExponentialTakesSumsToProducts) {
  EXPECT_EQ(exponential(0), 1U);
  EXPECT_EQ(exponential(5), power(kGenerator, 5));
  const Element a = 1000000000000000003U;
  const Element b = 999999999999999989U;
  EXPECT_EQ(multiply(exponential(a), exponential(b)), exponential((a + b) % kExponents));
  EXPECT_EQ(power(kGenerator, kExponents), 1U);
}

TEST(HashTest, DependsOnKeyNameOrderAndNumber) {
  const KeyedHash hash(1);
  const auto of = [&](std::uint64_t a, std::uint64_t b) {
    return KeyedHash::element(hash.step(hash.step(hash.start(number_of("f")), a), b));
  };
  EXPECT_EQ(of(3, 4), of(3, 4));
  EXPECT_NE(of(3, 4), of(4, 3));
  EXPECT_LT(of(3, 4), kPrime);
  const KeyedHash other(2);
  EXPECT_NE(hash.start(number_of("f")), other.start(number_of("f")));
  EXPECT_NE(hash.start(number_of("f")), hash.start(number_of("g")));
}

}  // namespace
}  // namespace placet::algebra
