// The properties of placements_property_test.cc over many times as many placements.
#include <gtest/gtest.h>

#include "derive/derivation_properties.h"

namespace placet::testing {
namespace {

class ManyPlacements : public ::testing::TestWithParam<int> {};

TEST_P(ManyPlacements, KeepTheProperties) {
  const int jobs = check_placements(static_cast<std::uint32_t>(7000 + GetParam()), 1'000,
                                    static_cast<std::size_t>(GetParam() % 4));
  EXPECT_GE(jobs, 40'000);
}

INSTANTIATE_TEST_SUITE_P(OfEveryModel, ManyPlacements, ::testing::Range(0, 8));

}  // namespace
}  // namespace placet::testing
