#include "placement/refinement.h"

#include <gtest/gtest.h>

#include "units/error.h"

namespace placet {
namespace {

// Dense 4,8 has boundaries 1 8 32, experts 2,8,2 have 1 2 16 32: together 1 2 8 16 32.
TEST(RefinementTest, SplitsUntilBothAreProductsOfNeighbours) {
  const Refinement mesh = common_refinement({4, 8}, {2, 8, 2});
  const std::vector<RefinedAxis> axes = {{2, 0, 0}, {2, 0, 1}, {4, 1, 1}, {2, 1, 2}};
  EXPECT_EQ(mesh.axes, axes);
  EXPECT_EQ(mesh.problem, "");
}

TEST(RefinementTest, EqualFactorisationsNeedNoSplit) {
  const std::vector<RefinedAxis> axes = {{4, 0, 0}, {8, 1, 2}};
  EXPECT_EQ(common_refinement({4, 8}, {4, 1, 8}).axes, axes);
}

// 4 and 6 are boundaries: neither divides the other. Of the divisors of 12 that divide 6 or are
// divided by it, 3 is nearer to 4 (3/4) than 6 (3/2).
TEST(RefinementTest, NamesTheNearestWhereThereIsNone) {
  const Refinement mesh = common_refinement({2, 6}, {3, 4});
  EXPECT_TRUE(mesh.axes.empty());
  EXPECT_EQ(mesh.problem, "the innermost 4 devices of 2x6 and 3x4 do not divide the innermost 6");
  EXPECT_EQ(mesh.nearest, (std::vector<std::int64_t>{4, 3}));
}

TEST(RefinementTest, DifferentProductsHaveNone) {
  const Refinement mesh = common_refinement({4, 8}, {8, 8});
  EXPECT_TRUE(mesh.axes.empty());
  EXPECT_EQ(mesh.problem, "4x8 is 32 devices, 8x8 is 64");
  EXPECT_EQ(mesh.nearest, (std::vector<std::int64_t>{4, 8}));
}

TEST(RefinementTest, EveryRefinementMultipliesBackToBoth) {
  const std::vector<std::int64_t> degrees = {1, 2, 3, 4, 6};
  for (std::int64_t a : degrees) {
    for (std::int64_t b : degrees) {
      for (std::int64_t c : degrees) {
        if (72 % (a * b) != 0 || 72 % c != 0) continue;
        const std::vector<std::int64_t> first = {72 / (a * b), a, b};
        const std::vector<std::int64_t> second = {72 / c, c};
        const Refinement mesh = common_refinement(first, second);
        if (mesh.axes.empty()) {
          EXPECT_FALSE(common_refinement(first, mesh.nearest).axes.empty());
          continue;
        }
        std::vector<std::int64_t> x = {1, 1, 1};
        std::vector<std::int64_t> y = {1, 1};
        for (const RefinedAxis& axis : mesh.axes) {
          x[axis.first] *= axis.degree;
          y[axis.second] *= axis.degree;
        }
        EXPECT_EQ(x, first);
        EXPECT_EQ(y, second);
      }
    }
  }
}

TEST(RefinementTest, NonsenseIsOurOwnFault) {
  EXPECT_THROW((void)common_refinement({0}, {1}), InternalError);
}

}  // namespace
}  // namespace placet
