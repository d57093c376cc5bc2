#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "execute/meanings.h"
#include "units/error.h"

namespace placet::execute {
namespace {

double at(const std::string& name, const std::vector<double>& x, const Meanings& meanings = {},
          const FunctionPlace& place = {}) {
  return value_of(meanings, meant(name, "test"), x, place);
}

TEST(MeaningsTest, RefuseUnknownFunctionsByName) {
  try {
    meant("sigmoid-of-doom.3", "gate");
    FAIL();
  } catch (const InputError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("sigmoid-of-doom.3"), std::string::npos) << text;
    EXPECT_NE(text.find("gate"), std::string::npos) << text;
  }
}

TEST(MeaningsTest, AreSetByWords) {
  Meanings meanings;
  set_meaning(meanings, "learning-rate=0.25");
  set_meaning(meanings, "activation=relu");
  EXPECT_EQ(meanings.learning_rate, 0.25);
  EXPECT_EQ(at("act", {-1}, meanings), 0);
  for (const char* wrong : {"learning-rat=1", "learning-rate=much", "learning-rate", "dropout=2",
                            "activation=swish", "seed=0"}) {
    EXPECT_THROW(set_meaning(meanings, wrong), InputError) << wrong;
  }
}

// x = 3, mean 4/2 = 2, squares 10/2 = 5, variance 5 - 4 = 1: (3 - 2) / 1.
TEST(FunctionsTest, NormsByTheSumsOfTheirEntries) {
  Meanings meanings{.norm_epsilon = 1e-30};
  EXPECT_NEAR(at("normal", {3, 4, 10}, meanings, {.count = 2}), 1, 1e-15);
  // Root mean square: 3 / sqrt(18 / 2).
  EXPECT_NEAR(at("normal", {3, 18}, meanings, {.count = 2}), 1, 1e-15);
}

// After one step of Adam both corrected moments are the gradient's: p - rate sign(g).
TEST(FunctionsTest, StepsOfAdamBeginWithTheRate) {
  Meanings meanings{.updates = {Meanings::Update::adam}, .learning_rate = 0.5, .weight_decay = 0};
  const double m = at("moment0", {0, 4}, meanings);
  const double v = at("moment1", {0, 4}, meanings);
  EXPECT_NEAR(m, 0.4, 1e-15);
  EXPECT_NEAR(v, 0.016, 1e-15);
  EXPECT_NEAR(at("stepped", {1, m, v, 4}, meanings, {.step = 1}), 0.5, 1e-8);
}

std::vector<double> orthogonalised(const std::vector<double>& x, std::int64_t rows,
                                   std::int64_t columns) {
  FunctionPlace place;
  place.given = {rows, columns};
  std::vector<double> values;
  values_of({}, meant("orthogonal.1", "test"), {x}, place, values);
  return values;
}

// A matrix U S V^T becomes 0.2 sqrt(3) U f(S) V^T with f(s) = 3.4445 s - 4.775 s^3 + 2.0315 s^5
// five times, from singular values whose squares add up to one. Of (1 2 3; 4 -5 6) by numpy's svd.
TEST(FunctionsTest, MatricesAreOrthogonalisedByTheirSingularValues) {
  const std::vector<double> expected = {0.04861834, 0.27704073, 0.2288415,
                                        0.11148687, -0.1843096, 0.14648368};
  const std::vector<double> wide = orthogonalised({1, 2, 3, 4, -5, 6}, 2, 3);
  const std::vector<double> tall = orthogonalised({1, 4, 2, -5, 3, 6}, 3, 2);
  ASSERT_EQ(wide.size(), 6U);
  ASSERT_EQ(tall.size(), 6U);
  for (std::size_t r = 0; r < 2; ++r) {
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(wide[r * 3 + c], expected[r * 3 + c], 1e-6);
      EXPECT_NEAR(tall[c * 2 + r], expected[r * 3 + c], 1e-6);
    }
  }
}

// Squared norm 16: norm 4, limit 1.
TEST(FunctionsTest, LimitsTheNorm) {
  EXPECT_NEAR(at("limited", {16}), 0.25, 1e-6);
  EXPECT_EQ(at("limited", {0.01}), 1);
  // Of gradients that are 8 times too large: norm 4 / 8 is within the limit, 1/8 takes the 8 away.
  EXPECT_EQ(at("limited", {16, 8}), 0.125);
}

TEST(FunctionsTest, DerivativesAreThoseOfSmallChanges) {
  const double h = 1e-6;
  struct Case {
    const char* name;
    std::vector<double> x;
  };
  const std::vector<Case> cases = {{"act", {0.7}},       {"act", {-1.3}},         {"power", {1.5}},
                                   {"normal", {1.5, 7}}, {"normal", {1.5, 2, 9}}, {"log", {2.5}},
                                   {"inv", {0.4}},       {"entry", {3}}};
  const FunctionPlace place{.count = 4};
  for (const Meanings::Activation kind :
       {Meanings::Activation::gelu, Meanings::Activation::gelu_tanh, Meanings::Activation::silu}) {
    const Meanings meanings{.activation = kind};
    for (const Case& c : cases) {
      for (std::size_t i = 0; i < c.x.size(); ++i) {
        std::vector<double> up = c.x;
        std::vector<double> down = c.x;
        up[i] += h;
        down[i] -= h;
        const double slope =
            (at(c.name, up, meanings, place) - at(c.name, down, meanings, place)) / (2 * h);
        EXPECT_NEAR(at(c.name + ("'" + std::to_string(i)), c.x, meanings, place), slope, 1e-8)
            << c.name << " " << i;
      }
    }
  }
}

TEST(FunctionsTest, RoutesToTheLargest) {
  std::vector<double> weights;
  const Meanings meanings;
  values_of(meanings, meant("route.2", "t"), {{1, 3, 2, 0}}, {}, weights);
  const double e = std::exp(1.0);
  ASSERT_EQ(weights.size(), 4U);
  EXPECT_EQ(weights[0], 0);
  EXPECT_NEAR(weights[1], e / (e + 1), 1e-15);
  EXPECT_NEAR(weights[2], 1 / (e + 1), 1e-15);
  std::vector<double> chosen;
  values_of(meanings, meant("chosen.2", "t"), {{1, 3, 2, 0}}, {}, chosen);
  EXPECT_EQ(chosen, (std::vector<double>{0, 1, 1, 0}));
  // The weights' derivatives: w1 w2, of opposite signs, and none of what is not chosen.
  std::vector<double> slopes;
  values_of(meanings, meant("route.2'0", "t"), {{1, 3, 2, 0}}, {}, slopes);
  ASSERT_EQ(slopes.size(), 16U);
  const double product = weights[1] * weights[2];
  EXPECT_NEAR(slopes[1 * 4 + 1], product, 1e-15);
  EXPECT_NEAR(slopes[1 * 4 + 2], -product, 1e-15);
  EXPECT_EQ(slopes[1 * 4 + 0], 0);
}

// A quarter turn in the plane of entries 0 and 2 of four: the first goes to the third.
TEST(FunctionsTest, TurnsHeads) {
  const Meanings meanings;
  FunctionPlace place{.positions = {3, 0, 2}, .sizes = {8, 4, 4}};
  EXPECT_NEAR(rotation_of(meanings, place, 3), std::sin(3.0), 1e-15);
  place.positions = {3, 2, 0};
  EXPECT_NEAR(rotation_of(meanings, place, 3), -std::sin(3.0), 1e-15);
  place.positions = {3, 1, 1};
  EXPECT_NEAR(rotation_of(meanings, place, 3), std::cos(3.0 / 100), 1e-15);
  place.positions = {3, 1, 2};
  EXPECT_EQ(rotation_of(meanings, place, 3), 0);
}

}  // namespace
}  // namespace placet::execute
