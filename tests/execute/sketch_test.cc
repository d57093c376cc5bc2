#include "execute/sketch.h"

#include <gtest/gtest.h>

#include <vector>

namespace placet::execute {
namespace {

constexpr std::uint64_t kP = (std::uint64_t{1} << 61) - 1;

Number exact(double x) {
  bool fits = true;
  return number_of_real(x, fits);
}

// 2^60 * 4 = 2^62 = 2 * 2^61 = 2, as 2^61 = 1; (p - 1)^2 = (-1)^2 = 1.
TEST(SketchTest, FieldHasTheRulesOfAPrime) {
  EXPECT_EQ(field_product(std::uint64_t{1} << 60, 4), 2U);
  EXPECT_EQ(field_product(kP - 1, kP - 1), 1U);
  EXPECT_EQ(field_sum(kP - 1, 5), 4U);
}

// 1 is 2^80 units of 2^-80, and 2^80 = 2^19 in the field; -1 is its negative. A part k of 1 is
// 2^-60 (k + 1) units, and 2^-60 = 2.
TEST(SketchTest, ExactNumbersAreWholeOnesOfTheField) {
  EXPECT_EQ(field_of(exact(1)), std::uint64_t{1} << 19);
  EXPECT_EQ(field_of(exact(-1)), kP - (std::uint64_t{1} << 19));
  EXPECT_EQ(field_of(Number{}), 0U);
  Number small;
  small.parts[0] = 3;
  EXPECT_EQ(field_of(small), 6U);
  small.parts[0] = 0;
  small.parts[2] = 3;
  EXPECT_EQ(field_of(small), 24U);
}

TEST(SketchTest, SumsOfRowsHaveTheSumsOfTheirSketches) {
  const SketchWeights weights(7);
  std::vector<LabelRun> runs = {{.label = 5, .length = 3}, {.label = 100, .length = 6}};
  weights.weigh(runs);
  std::vector<Number> a, b, sum;
  for (int k = 0; k < 9; ++k) {
    a.push_back(exact(1.5 * k - 3));
    b.push_back(exact(-0.001 * k * k));
    a.back().parts[1] = k;
    b.back().parts[1] = kPartMask;  // a carry
    sum.push_back(a.back());
    ASSERT_TRUE(add_to(sum.back(), b.back()));
  }
  Sketch both = weights.sketch(a.data(), runs);
  add(both, weights.sketch(b.data(), runs));
  EXPECT_EQ(weights.sketch(sum.data(), runs).field, both.field);
}

// The weight of an entry is that of its label, wherever it stands.
TEST(SketchTest, RunsMayBeCut) {
  const SketchWeights weights(7);
  std::vector<LabelRun> whole = {{.label = 3, .length = 11}};
  std::vector<LabelRun> cut = {{.label = 3, .length = 5}, {.label = 8, .length = 6}};
  weights.weigh(whole);
  weights.weigh(cut);
  std::vector<Number> row;
  std::vector<double> reals;
  for (int k = 0; k < 11; ++k) {
    row.push_back(exact(0.3 * k - 1));
    reals.push_back(0.3 * k - 1);
  }
  EXPECT_EQ(weights.sketch(row.data(), whole), weights.sketch(row.data(), cut));
  EXPECT_EQ(weights.sketch(reals.data(), whole).field, weights.sketch(reals.data(), cut).field);
}

TEST(SketchTest, AnyChangeAndAnySwapShows) {
  const SketchWeights weights(7);
  std::vector<LabelRun> runs = {{.label = 0, .length = 20}};
  weights.weigh(runs);
  std::vector<Number> row;
  for (int k = 0; k < 20; ++k) row.push_back(exact(k));
  const std::uint64_t was = weights.sketch(row.data(), runs).field;
  for (std::size_t k = 0; k < row.size(); ++k) {
    row[k].high ^= 1;
    EXPECT_NE(weights.sketch(row.data(), runs).field, was) << k;
    row[k].high ^= 1;
    std::swap(row[k], row[(k + 7) % row.size()]);
    EXPECT_NE(weights.sketch(row.data(), runs).field, was) << k;
    std::swap(row[k], row[(k + 7) % row.size()]);
  }
}

}  // namespace
}  // namespace placet::execute
