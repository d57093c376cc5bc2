#include "validate/statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace placet {
namespace {

TEST(StatisticsTest, SummarizesErrors) {
  // Sizes 0.1, 0.1, 0.4: mean 0.6/3, median the second, worst 0.4; signed sum -0.1 + 0.1 + 0.4.
  const ErrorSummary summary = summarize(std::vector{-0.1, 0.4, 0.1});
  EXPECT_EQ(summary.rows, 3);
  EXPECT_DOUBLE_EQ(summary.mean_abs, 0.2);
  EXPECT_DOUBLE_EQ(summary.median_abs, 0.1);
  EXPECT_DOUBLE_EQ(summary.worst_abs, 0.4);
  EXPECT_DOUBLE_EQ(summary.bias, 0.4 / 3);
  // p95 lies at position 0.95 x 2 = 1.9, between 0.1 and 0.4: 0.1 + 0.9 x 0.3.
  EXPECT_DOUBLE_EQ(summary.p95_abs, 0.37);
  EXPECT_EQ(summary.within[0], 0);
  EXPECT_DOUBLE_EQ(summary.within[2], 2.0 / 3);  // a size equal to the bound is inside
  EXPECT_DOUBLE_EQ(summary.within[3], 2.0 / 3);
}

TEST(StatisticsTest, SummaryOfNothingIsZero) { EXPECT_EQ(summarize({}), ErrorSummary{}); }

TEST(StatisticsTest, QuantileIsLinearBetweenNeighbours) {
  const std::vector values = {0.0, 10.0};
  EXPECT_DOUBLE_EQ(quantile(values, 0.95), 9.5);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 10);
}

TEST(StatisticsTest, RankCorrelationFollowsOrderOnly) {
  const std::vector a = {1.0, 2.0, 3.0};
  // Ranks 1 2 3 and 1 3 2: sum of products about the mean (-1)(-1) + 0 + (1)(0) = 1, over 2.
  EXPECT_DOUBLE_EQ(*rank_correlation(a, std::vector{10.0, 30.0, 20.0}), 0.5);
  EXPECT_DOUBLE_EQ(*rank_correlation(a, std::vector{1.0, 10.0, 1e9}), 1);
  EXPECT_DOUBLE_EQ(*rank_correlation(a, std::vector{3.0, 2.0, 1.0}), -1);
}

TEST(StatisticsTest, TiesShareTheirRank) {
  // Ranks 1.5 1.5 3 against 1 2 3: products 0.5 + 0 + 1, over sqrt(1.5 x 2).
  EXPECT_NEAR(*rank_correlation(std::vector{5.0, 5.0, 7.0}, std::vector{1.0, 2.0, 3.0}),
              1.5 / 1.7320508075688772, 1e-12);
}

TEST(StatisticsTest, NoRankCorrelationWithoutOrder) {
  EXPECT_FALSE(rank_correlation(std::vector{1.0}, std::vector{1.0}));
  EXPECT_FALSE(rank_correlation(std::vector{1.0, 1.0}, std::vector{1.0, 2.0}));
}

TEST(StatisticsTest, CountsRunsThatRanOut) {
  Confusion counts;
  counts = with(counts, true, FitGrade::too_large);
  counts = with(counts, true, FitGrade::fits);
  counts = with(counts, false, FitGrade::too_large);
  counts = with(counts, false, FitGrade::fits);
  counts = with(counts, true, FitGrade::tight);
  counts = with(counts, false, FitGrade::tight);
  EXPECT_EQ(counts, (Confusion{1, 1, 1, 1, 1, 1}));
}

}  // namespace
}  // namespace placet
