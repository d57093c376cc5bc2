// A few hundred of the spaces of plans_slow_test.cc.
#include <gtest/gtest.h>

#include "search/brute_force.h"
#include "search/cost_tables.h"

namespace placet::testing {
namespace {

TEST(PlansProperty, RandomTablesGiveTheBestOfAllLeaves) {
  for (std::uint32_t seed = 1; seed <= 1000; ++seed) ASSERT_EQ(compare_on_table(seed), "");
}

TEST(PlansProperty, RandomSmallJobsGiveTheBestOfAllPlans) {
  EXPECT_EQ(SmallSpaces().compare_all(1, 100), "");
}

}  // namespace
}  // namespace placet::testing
