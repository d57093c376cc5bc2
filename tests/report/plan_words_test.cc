#include "report/plan_words.h"

#include <gtest/gtest.h>

namespace placet {
namespace {

TEST(DollarsTest, HaveCents) {
  EXPECT_EQ(dollars(0), "$0.00");
  EXPECT_EQ(dollars(0.0999), "$0.10");
  EXPECT_EQ(dollars(0.1), "$0.10");
  EXPECT_EQ(dollars(3.4), "$3.40");
  EXPECT_EQ(dollars(999.999), "$1,000.00");
  EXPECT_EQ(dollars(12'345.6), "$12,345.60");
  EXPECT_EQ(dollars(2'390'000), "$2.39 million");
}

TEST(DollarsTest, HaveTwoDigitsBelowACent) {
  EXPECT_EQ(dollars(0.0034), "$0.0034");
  EXPECT_EQ(dollars(0.005), "$0.0050");
  EXPECT_EQ(dollars(0.000012), "$0.000012");
  EXPECT_EQ(dollars(1e-20), "$0.000000000000");
}

TEST(DurationTest, IsInTheUnitThatFits) {
  EXPECT_EQ(duration(3.46), "3.5 days");
  EXPECT_EQ(duration(0.5), "12.0 hours");
  EXPECT_EQ(duration(0.01), "14.4 minutes");
}

// Steps of $2 and 1,000,000 tokens: 2,500,000 tokens take three of them.
TEST(PriceTest, IsOfAStepOrOfTraining) {
  PlanSheet sheet;
  PlanLine plan;
  plan.found.figures.step = seconds(1);
  plan.found.figures.tokens = 1e6;
  EXPECT_EQ(price_words(sheet, plan, 8), "-");
  plan.cost = 2;
  EXPECT_EQ(price_words(sheet, plan, 8), "$2.00");
  sheet.train_tokens = 2.5e6;
  EXPECT_EQ(price_words(sheet, plan, 8), "$6.00");
}

}  // namespace
}  // namespace placet
