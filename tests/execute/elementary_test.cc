#include "execute/elementary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "execute/meanings.h"

namespace placet::execute {
namespace {

/// Against the C library: at most ten units in the last place.
void expect_near(double found, double expected, const char* what, double x) {
  const double unit = std::fabs(expected) * 2.3e-16;
  EXPECT_NEAR(found, expected, 10 * unit + 1e-300) << what << " of " << x;
}

TEST(ElementaryTest, IsTheLibrarysWithinAFewUnits) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-30, 30);
  for (int k = 0; k < 20000; ++k) {
    const double x = uniform(random);
    expect_near(exp_of(x), std::exp(x), "exp", x);
    expect_near(tanh_of(x / 8), std::tanh(x / 8), "tanh", x / 8);
    expect_near(erf_of(x / 8), std::erf(x / 8), "erf", x / 8);
    const double positive = std::ldexp(std::fabs(x) + 0.01, k % 100 - 50);
    EXPECT_NEAR(log_of(positive), std::log(positive), 3e-16 * (1 + std::fabs(std::log(positive))));
    EXPECT_NEAR(sine_of(x * 100), std::sin(x * 100), 3e-16 + 1e-16) << x * 100;
    EXPECT_NEAR(cosine_of(x * 100), std::cos(x * 100), 3e-16 + 1e-16) << x * 100;
  }
}

// Of binary32: at most four units in the last place.
TEST(ElementaryTest, SingleNumbersAreTheLibrarysWithinAFewUnits) {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> uniform(-80, 80);
  for (int k = 0; k < 20000; ++k) {
    const float x = uniform(random);
    const double e = std::exp(static_cast<double>(x));
    EXPECT_NEAR(static_cast<double>(exp_of(x)), e, e * 4 * 1.2e-7) << x;
    const float y = std::ldexp(x, -k % 12);
    const double t = std::tanh(static_cast<double>(y));
    EXPECT_NEAR(static_cast<double>(tanh_of(y)), t, std::fabs(t) * 4 * 1.2e-7) << y;
  }
  EXPECT_NEAR(static_cast<double>(exp_of(88.5F)) / std::exp(88.5), 1, 4 * 1.2e-7);
  EXPECT_NEAR(exp_of(709.5) / std::exp(709.5), 1, 1e-14);
  EXPECT_EQ(exp_of(0.0F), 1.0F);
  EXPECT_EQ(exp_of(-100.0F), 0.0F);
  EXPECT_TRUE(std::isinf(exp_of(100.0F)));
  EXPECT_TRUE(std::isnan(exp_of(std::nanf(""))));
  EXPECT_TRUE(std::isnan(tanh_of(std::nan(""))));
}

// Entries of a row are computed side by side: with the bits of each by itself.
TEST(ElementaryTest, ManyAtOnceHaveTheBitsOfOne) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-800, 800);
  std::vector<double> all(1001);
  for (double& x : all) x = uniform(random);
  std::vector<double> made = all;
  make_exponentials(made.data(), made.size());
  for (std::size_t k = 0; k < all.size(); ++k) EXPECT_EQ(made[k], exp_of(all[k])) << all[k];
}

TEST(ElementaryTest, GatesAreThoseOfTheLibrary) {
  for (double x = -40; x <= 40; x += 0.37) {
    const double softplus = std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
    EXPECT_NEAR(softplus_of(x) / softplus, 1, 4e-15) << x;
    const double sigmoid = 1 / (1 + std::exp(-x));
    EXPECT_NEAR(sigmoid_of(x) / sigmoid, 1, 4e-15) << x;
    EXPECT_NEAR(softplus_of(Dual(x, 1)).d / sigmoid, 1, 4e-15) << x;
    // 1 - sigmoid(x) = sigmoid(-x), which loses no digits.
    const double slope = sigmoid / (1 + std::exp(x));
    EXPECT_NEAR(sigmoid_of(Dual(x, 1)).d, slope, 1.2e-16) << x;
    EXPECT_NEAR(silu_of(x), x * sigmoid, 1e-15 * std::max(1.0, std::fabs(x))) << x;
    EXPECT_NEAR(silu_of(Dual(x, 1)).d, sigmoid + x * slope, 4e-15) << x;
  }
  for (const double far : {89.0, 800.0}) {
    EXPECT_EQ(silu_of(Dual(far, 1)).d, 1);
    EXPECT_NEAR(silu_of(Dual(-far, 1)).d, 0, 1e-36);
    EXPECT_NEAR(silu_of(DualOf<float>(-static_cast<float>(far), 1)).d, 0, 1e-36F);
  }
  EXPECT_EQ(softplus_of(800.0), 800);
  EXPECT_EQ(sigmoid_of(-800.0), 0);
  EXPECT_EQ(sigmoid_of(Dual(-800, 1)).d, 0);
}

TEST(ElementaryTest, KnowsItsEnds) {
  EXPECT_EQ(exp_of(0.0), 1);
  EXPECT_EQ(exp_of(-800.0), 0);
  EXPECT_TRUE(std::isinf(exp_of(800.0)));
  EXPECT_EQ(tanh_of(0.0), 0);
  EXPECT_EQ(tanh_of(-100.0), -1);
  EXPECT_EQ(erf_of(7.0), 1);
  EXPECT_EQ(log_of(1.0), 0);
  EXPECT_EQ(cosine_of(0), 1);
  EXPECT_EQ(whole_power_of(0.5, 3), 0.125);
  EXPECT_NEAR(power_of(10000, -0.5), 0.01, 1e-17);
}

}  // namespace
}  // namespace placet::execute
