// Search against looking at everything (docs/theory.md §9.4): 10,000 random cost tables, 3,000
// random small jobs on random clusters.
#include <gtest/gtest.h>

#include "search/brute_force.h"
#include "search/cost_tables.h"

namespace placet::testing {
namespace {

TEST(PlansSlow, RandomTablesGiveTheBestOfAllLeaves) {
  for (std::uint32_t seed = 1001; seed <= 11000; ++seed) ASSERT_EQ(compare_on_table(seed), "");
}

TEST(PlansSlow, RandomSmallJobsGiveTheBestOfAllPlans) {
  EXPECT_EQ(SmallSpaces().compare_all(101, 3060), "");
}

}  // namespace
}  // namespace placet::testing
