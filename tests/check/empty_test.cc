// Parts without entries: what a device is said to have of them does not matter.
#include "check/empty.h"

#include <gtest/gtest.h>

#include "check/both_judges.h"
#include "lower/catalogue_jobs.h"
#include "lower/small.h"
#include "program/fault.h"
#include "units/error.h"

namespace placet::testing {
namespace {

/// Axes a = 3, b = 2, micro-batches 1; dims of 2 and 4.
Program mesh() {
  Program program;
  program.axes = {
      {.name = "a", .degree = 3}, {.name = "b", .degree = 2}, {.name = "micro-batch", .degree = 1}};
  program.dims = {{.name = "short", .extent = 2}, {.name = "long", .extent = 4}};
  return program;
}

DeviceClass device(const std::vector<std::vector<std::int64_t>>& box) {
  return {.name = "c", .box = box, .initial = {}, .results = {}, .body = {}};
}

Content content(const std::vector<std::vector<Splits>>& cuts, const Splits& flat) {
  Content out{.pieces = {}, .flat = flat};
  for (const std::vector<Splits>& piece : cuts) {
    std::vector<int> dims;
    for (std::size_t d = 0; d < piece.size(); ++d) dims.push_back(static_cast<int>(d));
    out.pieces.push_back({.dims = dims, .cuts = piece, .items = {}});
  }
  return out;
}

// 2 over 3 devices: 1, 1, 0.
TEST(EmptyTest, OnlyTheLastDeviceHasNothingOfAShortDim) {
  const Content shape = content({{{{.axis = 0}}}}, {});
  EXPECT_FALSE(has_no_entries(mesh(), device({{0}, {}}), shape, 0));
  EXPECT_FALSE(has_no_entries(mesh(), device({{1}, {}}), shape, 0));
  EXPECT_TRUE(has_no_entries(mesh(), device({{2}, {}}), shape, 0));
  EXPECT_FALSE(has_no_entries(mesh(), device({{}, {}}), shape, 0));
}

// The part of the next device but one over: that of device 2 is device 0's.
TEST(EmptyTest, AShiftedPartIsAnotherDevices) {
  const Content shape = content({{{{.axis = 0, .open = true, .shift = 1}}}}, {});
  EXPECT_TRUE(has_no_entries(mesh(), device({{1}, {}}), shape, 0));
  EXPECT_FALSE(has_no_entries(mesh(), device({{2}, {}}), shape, 0));
}

// Two tensors [short], [short long]: a row of 2 + 8 entries over b: 5 and 5. Device b = 1 has
// nothing of the first one.
TEST(EmptyTest, APartOfARowMayMissATensor) {
  const Content shape = content({{{}}, {{}, {}}}, {{.axis = 1}});
  EXPECT_FALSE(has_no_entries(mesh(), device({{}, {0}}), shape, 0));
  EXPECT_TRUE(has_no_entries(mesh(), device({{}, {1}}), shape, 0));
  EXPECT_FALSE(has_no_entries(mesh(), device({{}, {0}}), shape, 1));
  EXPECT_FALSE(has_no_entries(mesh(), device({{}, {1}}), shape, 1));
}

// What was put together, in whatever way, is not worked out.
TEST(EmptyTest, OfClosedPartsItSaysNo) {
  const Content shape = content({{{{.axis = 1, .open = false}, {.axis = 0}}}}, {});
  EXPECT_FALSE(has_no_entries(mesh(), device({{2}, {}}), shape, 0));
}

// On the last of three devices, which has a part of some tensors of its row only: an update left
// out, or a square with another scale.
TEST(EmptyTest, WhatIsDoneToNothingDoesNotMatter) {
  const Program program = lower_small(load({"gpt2", "dp=3[3,2,1]:zero1"}));
  for (const std::string fault : {"skip_update(update, rank=2", "rescale(norm, by=2, rank=2"}) {
    const auto [equal, wrong] = equal_and_wrong(program, fault);
    EXPECT_GE(equal, 1) << fault;
    EXPECT_GE(wrong, 1) << fault;
  }
}

// The weight of a norm has 2 entries, of which four devices over dp and cp have 1, 0, 1 and 0. On
// those of cp 1 the sum of its squares is over nothing, whichever buffer is taken for it: also
// once the devices along dp have been added up. Of the larger tensors it is not.
TEST(EmptyTest, ASumOverNothingIsNothingOnManyDevices) {
  const Program program = lower_small(load({"qwen2.5-7b", "dp=2:zero1 cp=2:heads+zero1"}));
  for (const std::string rank : {"1", "3"}) {
    const auto [equal, wrong] =
        equal_and_wrong(program, "reuse_buffer(reduce_scatter, of=*, rank=" + rank);
    EXPECT_GE(equal, 1) << rank;
    EXPECT_GE(wrong, 1) << rank;
  }
}

// Rows of the vocabulary are halved over tp. Devices of tp 0, that is ranks 0 and 2, have the first
// half, so that leaving the position out changes nothing there: neither where the table is read nor
// where its gradient is made, whose length is its buffer's. On those of tp 1 it does.
TEST(PositionTest, ThePartThatBeginsTheDimNeedsNone) {
  const Program program = lower_small(load({"mixtral-8x7b", "ep=2:ep+zero1 tp=2:tp"}));
  for (const std::string tensor : {"w.embedding*", "d.embedding*"}) {
    for (const auto& [rank, is_equal] : {std::pair{"0", true}, {"1", false}, {"2", true}}) {
      const auto [equal, wrong] =
          equal_and_wrong(program, "drop_position(compute, tensor=" + tensor + ", rank=" + rank);
      EXPECT_EQ(equal, is_equal ? 1 : 0) << tensor << rank;
      EXPECT_EQ(wrong, is_equal ? 0 : 1) << tensor << rank;
    }
  }
}

// A sum over the elements of a row is one over the device's part of it, which begins elsewhere
// where the row is put together in another order.
TEST(EmptyTest, RowsInAnotherOrderAreOtherRows) {
  const Program program = mesh();
  const Regions regions(program);
  Rows rows;
  const Content one = content({{{}}, {{}, {}}}, {{.axis = 1}});
  const Content other = content({{{}, {}}, {{}}}, {{.axis = 1}});
  const auto number_of = [&](const Content& c, std::size_t piece) {
    return rows.number_of(view_of(c), piece, regions);
  };
  EXPECT_EQ(number_of(one, 0), number_of(one, 0));
  EXPECT_NE(number_of(one, 0), number_of(one, 1));
  EXPECT_NE(number_of(one, 0), number_of(other, 1));
}

// A tensor of 2 over the three devices of a, and of 2 over the two of b, before a whole one: only
// along a do devices have rows of other lengths, and only tensors that a does not divide lie
// elsewhere in these.
TEST(EmptyTest, ARowBeginsElsewhereWhereWhatStandsBeforeIsShorter) {
  const Program program = mesh();
  const Regions regions(program);
  Rows rows;
  const Content row = content({{{{.axis = 0}}}, {{{.axis = 1}}}, {{}}}, {{.axis = 1}});
  const auto shifts = [&](std::size_t piece, int axis) {
    const int number = rows.number_of(view_of(row), piece, regions);
    return rows.shifts({.node = 0, .dim = number, .cuts = row.flat}, axis);
  };
  EXPECT_FALSE(shifts(0, 0));
  EXPECT_TRUE(shifts(1, 0));
  EXPECT_TRUE(shifts(2, 0));
  EXPECT_FALSE(shifts(2, 1));
}

// Two elements over a, and over b inside of it: the first device of b has all of each part, and the
// last device of a nothing, with b as without.
TEST(EmptyTest, TwoDivisionsMayGiveTheSamePart) {
  const Content once = content({{{}, {}}}, {{.axis = 0}});
  const Content twice = content({{{}, {}}}, {{.axis = 0}, {.axis = 1}});
  Program program = mesh();
  program.dims[1].extent = 1;
  EXPECT_FALSE(is_same_part(program, device({{}, {}}), once, twice));
  EXPECT_TRUE(is_same_part(program, device({{}, {0}}), once, twice));
  EXPECT_FALSE(is_same_part(program, device({{0}, {1}}), once, twice));
  EXPECT_TRUE(is_same_part(program, device({{2}, {1}}), once, twice));
}

// Two elements of "short", of each 4 of "long" or of a dim of 4 of which 2 are stored: rows whose
// halves along b have 4 entries, but for the latter, which is not worked out.
TEST(EmptyTest, RoomIsNotKnownWhereNotAllEntriesAreStored) {
  Program program = mesh();
  program.dims.push_back({.name = "visited", .extent = 4, .chosen = 2});
  const DeviceClass all = device({{}, {}});
  const Where where{.program = program, .device_class = all, .micro_batches = {}};
  const Content row = content({{{}, {}}}, {{.axis = 1}});
  Content visited = row;
  visited.pieces[0].dims = {0, 2};
  EXPECT_TRUE(has_room(where, row, -1, row));
  EXPECT_FALSE(has_room(where, row, -1, visited));
  EXPECT_FALSE(has_room(where, visited, -1, row));
  program.dims.back().chosen = 4;
  EXPECT_TRUE(has_room(where, row, -1, visited));
}

}  // namespace
}  // namespace placet::testing
