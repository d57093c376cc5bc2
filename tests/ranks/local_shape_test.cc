#include "ranks/local_shape.h"

#include <gtest/gtest.h>

namespace placet::ranks {
namespace {

using Runs = std::vector<ranks::Run>;

Program program_with(std::vector<ProgramAxis> axes, std::vector<std::int64_t> extents) {
  Program program{.axes = std::move(axes)};
  for (const std::int64_t e : extents) program.dims.push_back({.name = "d", .extent = e});
  return program;
}

// [5 3] over two devices along the first dim: rows 3 and 2. Of the second piece [2], all. The row
// of 9 + 2 and 6 + 2 elements is divided over three: 4, 4, 3 and 3, 3, 2.
TEST(LocalShapeTest, APartOfTheRowOfTwoPieces) {
  const Program program = program_with({{"a", 2, {}}, {"b", 3, {}}, {"m", 1, {}}}, {5, 3, 2});
  const BufferType type{.pieces = {{{{0, {{0}}}, {1, {}}}}, {{{2, {}}}}}, .flat = {1}};
  const LocalShape shape = shape_of(program, type, {1, 2, 0});
  EXPECT_EQ(shape.pieces[0].extents, (Extents{2, 3}));
  EXPECT_EQ(shape.pieces[0].begins, (Extents{3, 0}));
  EXPECT_EQ(shape.pieces[1].row, 6);
  EXPECT_EQ(shape.flat, (Part{.begin = 6, .size = 2}));
  // The device's part is the second piece, and nothing of the first.
  EXPECT_EQ(view_of(shape, 0).size, 0);
  EXPECT_EQ(view_of(shape, 1).offset, 0);
  EXPECT_EQ(view_of(shape, 1).size, 2);
  EXPECT_NE(view_of(shape, 1).extents, nullptr);
  EXPECT_EQ(view_of(shape, -1).extents, nullptr);
}

TEST(LocalShapeTest, RunsOfABox) {
  const Extents wide{2, 4};
  const Extents narrow{2, 2};
  EXPECT_EQ(runs_between({wide, {0, 2}}, {narrow, {0, 0}}, narrow), (Runs{{2, 0, 2}, {6, 2, 2}}));
  // All of it is one run, and so is a number.
  EXPECT_EQ(runs_between({wide, {0, 0}}, {wide, {0, 0}}, wide), (Runs{{0, 0, 8}}));
  EXPECT_EQ(runs_between({{}, {}}, {{}, {}}, {}), (Runs{{0, 0, 1}}));
  EXPECT_TRUE(runs_between({wide, {0, 0}}, {narrow, {0, 0}}, {0, 2}).empty());
}

}  // namespace
}  // namespace placet::ranks
