// Sizes of buffers on devices, by hand and against all devices of a class.
#include "program/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace placet {
namespace {

// pp with shares 3:1, dp = 2, tp = 2, four micro-batches.
Program mesh() {
  Program p;
  p.axes = {{.name = "pp", .degree = 2, .shares = {3, 1}},
            {.name = "dp", .degree = 2},
            {.name = "tp", .degree = 2},
            {.name = "micro-batch", .degree = 4}};
  p.dims = {{.name = "token", .extent = 8},
            {.name = "hidden", .extent = 7},
            {.name = "ffn", .extent = 6},
            {.name = "expert", .extent = 4, .chosen = 2}};
  return p;
}

TEST(SizesTest, APartIsLargerForTheFirst) {
  const Program p = mesh();
  const PieceType piece{.dims = {{.dim = 1, .by = {{2}}}, {.dim = 2}}};
  EXPECT_EQ(local_extents(p, piece, {0, 0, 0, 0}), (std::vector<std::int64_t>{4, 6}));
  EXPECT_EQ(local_extents(p, piece, {0, 0, 1, 0}), (std::vector<std::int64_t>{3, 6}));
}

// 7 over tp is 4 and 3: one place further on the first device has 3 and the last one 4.
TEST(SizesTest, APartOfAnotherDeviceHasItsLength) {
  const Program p = mesh();
  const PieceType piece{.dims = {{.dim = 1, .by = {{2}}, .shift = 1}}};
  EXPECT_EQ(local_extents(p, piece, {0, 0, 0, 0}), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(local_extents(p, piece, {0, 0, 1, 0}), (std::vector<std::int64_t>{4}));
  EXPECT_EQ(part_of(7, {{2}}, 1, p.axes, {0, 0, 1, 0}), (Part{.begin = 0, .size = 4}));
  const BufferType type{.dtype = Dtype::bf16, .pieces = {piece}, .flat = {}};
  EXPECT_EQ(largest_bytes(p, type, {}), bytes(8));
}

// 7 over 3:1 is 5.25 and 1.75, rounded down 5 and 1: the piece left over goes to the larger share.
TEST(SizesTest, SharesRoundTheLargestUpFirst) {
  const Program p = mesh();
  const PieceType piece{.dims = {{.dim = 1, .by = {{0}}}}};
  EXPECT_EQ(local_extents(p, piece, {0, 0, 0, 0}), (std::vector<std::int64_t>{6}));
  EXPECT_EQ(local_extents(p, piece, {1, 0, 0, 0}), (std::vector<std::int64_t>{1}));
}

// 7 over tp gives 4 and 3, times 6; the row of both tensors, 24 + 8 on the first, halves over dp.
TEST(SizesTest, ARowOfTensorsIsDividedOnceMore) {
  const Program p = mesh();
  const BufferType type{
      .dtype = Dtype::bf16,
      .pieces = {{.dims = {{.dim = 1, .by = {{2}}}, {.dim = 2}}}, {.dims = {{.dim = 0}}}},
      .flat = {1}};
  EXPECT_EQ(stored_entries(p, type, {0, 0, 0, 0}), 16);
  EXPECT_EQ(stored_entries(p, type, {0, 0, 1, 0}), 13);
  EXPECT_EQ(stored_bytes(p, type, {0, 1, 1, 0}), bytes(26));
}

// 6 over dp is 3 and 3, each over tp 2 and 1. In one go it would be 2, 2, 1, 1, and what dp alone
// divides would be no union of these.
TEST(SizesTest, ARowIsDividedByOneAxisAfterTheOther) {
  const Program p = mesh();
  const BufferType both{.dtype = Dtype::fp32, .pieces = {{.dims = {{.dim = 2}}}}, .flat = {1, 2}};
  const BufferType outer{.dtype = Dtype::fp32, .pieces = {{.dims = {{.dim = 2}}}}, .flat = {1}};
  std::vector<std::int64_t> parts;
  for (std::int64_t dp : {0, 1}) {
    for (std::int64_t tp : {0, 1}) parts.push_back(stored_entries(p, both, {0, dp, tp, 0}));
    EXPECT_EQ(stored_entries(p, outer, {0, dp, 0, 0}), 3);
  }
  EXPECT_EQ(parts, (std::vector<std::int64_t>{2, 1, 2, 1}));
}

TEST(SizesTest, AScalarTakesOneNumber) {
  const Program p = mesh();
  const BufferType type{.dtype = Dtype::fp32, .pieces = {{}}, .flat = {}};
  EXPECT_EQ(stored_bytes(p, type, {0, 0, 0, 0}), bytes(4));
}

// Of [token 8, expert 4/tp, ffn 6] half of the experts are visited: 8 x 2 x 6 / 2. The experts'
// own tensors are stored whole.
TEST(SizesTest, OnlyVisitedExpertsAreStored) {
  const Program p = mesh();
  const BufferType visits{.dtype = Dtype::int8,
                          .pieces = {{.dims = {{.dim = 0}, {.dim = 3, .by = {{2}}}, {.dim = 2}}}}};
  EXPECT_EQ(stored_entries(p, visits, {0, 0, 0, 0}), 48);
  const BufferType weights{.dtype = Dtype::int8,
                           .pieces = {{.dims = {{.dim = 3, .by = {{2}}}, {.dim = 2}}}}};
  EXPECT_EQ(stored_entries(p, weights, {0, 0, 0, 0}), 12);
}

// 3 of 4 tokens of 8 live on pp 0: 6, and 2 on pp 1.
TEST(SizesTest, AClassOfOneCoordinateHasItsShare) {
  const Program p = mesh();
  const BufferType type{.dtype = Dtype::int8, .pieces = {{.dims = {{.dim = 0, .by = {{0}}}}}}};
  EXPECT_EQ(largest_bytes(p, type, {.name = "all", .box = {{}, {}, {}}}), bytes(6));
  EXPECT_EQ(largest_bytes(p, type, {.name = "last", .box = {{1}, {}, {}}}), bytes(2));
}

Bytes largest_by_trial(const Program& p, const BufferType& type) {
  Bytes largest = bytes(0);
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    for (std::int64_t j = 0; j < 4; ++j) {
      largest = std::max(largest, stored_bytes(p, type, {rank / 4, rank / 2 % 2, rank % 2, j}));
    }
  }
  return largest;
}

// Property: the closed form over a class is the largest of all its devices and micro-batches.
TEST(SizesTest, TheLargestOfAClassIsTheLargestOfItsDevices) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  for (int round = 0; round < 3000; ++round) {
    Program p = mesh();
    for (LogicalDim& dim : p.dims)
      dim = {.name = dim.name, .extent = 1 + static_cast<int>(below(40))};
    p.axes[0].shares = {static_cast<int>(below(5)), 1 + static_cast<int>(below(4))};
    std::vector<int> axes = {0, 1, 2, 3};
    std::shuffle(axes.begin(), axes.end(), random);
    BufferType type{.dtype = Dtype::bf16, .pieces = {{}}, .flat = {}};
    for (int d = 0; d < 2; ++d) {
      DividedDim dim{.dim = static_cast<int>(below(4)), .by = {}};
      for (std::size_t levels = below(3); levels > 0 && !axes.empty(); --levels) {
        dim.by.push_back({axes.back()});
        axes.pop_back();
        if (axes.empty() || below(2) == 0) continue;
        dim.by.back().push_back(axes.back());
        axes.pop_back();
      }
      type.pieces[0].dims.push_back(dim);
    }
    if (!axes.empty() && below(2) == 0) type.flat = {axes.back()};
    const DeviceClass all{.name = "all", .box = {{}, {}, {}}};
    ASSERT_EQ(largest_bytes(p, type, all), largest_by_trial(p, type)) << "round " << round;
  }
}

}  // namespace
}  // namespace placet
