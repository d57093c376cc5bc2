#include "checkpoint/reshard.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "checkpoint/given_state.h"
#include "checkpoint/scratch_folder.h"
#include "units/error.h"

namespace placet::checkpoint {
namespace {

using execute::StateSlice;
using Runs = std::vector<ranks::Run>;
using testing::columns_of_w;
using testing::floats_in;
using testing::GivenState;
using testing::ScratchFolder;

// Columns 1 and 2 of a matrix 2 x 4 are the entries 1, 2, 5, 6; the middle two of these 2 and 5.
TEST(ReshardTest, RunsOfASliceAreEntriesOfItsTensor) {
  StateSlice slice = columns_of_w(0, 1, 2);
  slice.count = 4;
  EXPECT_EQ(runs_of(slice), (Runs{{1, 0, 2}, {5, 2, 2}}));
  slice.first = 1;
  slice.count = 2;
  EXPECT_EQ(runs_of(slice), (Runs{{2, 0, 1}, {5, 1, 1}}));
}

// Entries 1, 2, 5, 6 and 2, 3, 4, 5: of both are 2 (number 1 and 0) and 5 (number 2 and 3).
TEST(ReshardTest, SharedRunsAreWhatBothHave) {
  EXPECT_EQ(shared_runs({{1, 0, 2}, {5, 2, 2}}, {{2, 0, 4}}), (Runs{{1, 0, 1}, {2, 3, 1}}));
  EXPECT_TRUE(shared_runs({{0, 0, 2}}, {{2, 0, 2}}).empty());
}

const CheckpointFacts kHalves{.mode = "f32", .mesh = {{"tp", 2}}};

/// Halves of the columns of 0 1 2 3 / 4 5 6 7.
GivenState halves() {
  GivenState state;
  state.add(columns_of_w(0, 0, 2), {0, 1, 4, 5});
  state.add(columns_of_w(1, 2, 2), {2, 3, 6, 7});
  return state;
}

TEST(ReshardTest, SlicesArePutTogetherFromThoseOfOtherRanks) {
  const ScratchFolder folder;
  write_checkpoint(folder / "c", kHalves, halves(), "--save");
  const Checkpoint from(folder / "c");
  StateSlice row = columns_of_w(0, 0, 4);  // the last three of the first row and two of the second
  row.first = 1;
  row.count = 5;
  StateSlice whole = columns_of_w(1, 0, 4);
  whole.count = 8;
  const Resharded state(from, {row, whole});
  EXPECT_EQ(floats_in(state.numbers(0), 5), (std::vector<float>{1, 2, 3, 4, 5}));
  EXPECT_EQ(floats_in(state.numbers(1), 8), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
}

std::string refusal_of_target(const GivenState& state, StateSlice target) {
  const ScratchFolder folder;
  write_checkpoint(folder / "c", kHalves, state, "--save");
  const Checkpoint from(folder / "c");
  target.count = ranks::elements_in(target.extents);
  try {
    const Resharded resharded(from, {std::move(target)});
    resharded.numbers(0);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ReshardTest, WhatIsNotThereOrNotTheSameIsRefused) {
  const auto says = [](const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos;
  };
  EXPECT_EQ(refusal_of_target(halves(), columns_of_w(0, 0, 4)), "");
  StateSlice other = columns_of_w(0, 0, 4);
  other.tensor = "v";
  EXPECT_PRED2(says, refusal_of_target(halves(), other), "'v' is no tensor of the checkpoint");
  other = columns_of_w(0, 0, 4);
  other.whole = {2, 8};
  EXPECT_PRED2(says, refusal_of_target(halves(), other), "has another shape");
  GivenState more = halves();
  StateSlice moment = columns_of_w(1, 0, 4);
  moment.tensor = "m";
  more.add(moment, {0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_PRED2(says, refusal_of_target(more, columns_of_w(0, 0, 4)), "'m' would be lost");
  GivenState half;
  half.add(columns_of_w(0, 0, 2), {0, 1, 4, 5});
  EXPECT_PRED2(says, refusal_of_target(half, columns_of_w(0, 0, 4)),
               "4 of its entries are on no rank");
  GivenState drifted;
  drifted.add(columns_of_w(0, 0, 4), {0, 1, 2, 3, 4, 5, 6, 7});
  drifted.add(columns_of_w(1, 0, 4), {0, 1, 2, 3, 4, 5, 6, 8});
  EXPECT_PRED2(says, refusal_of_target(drifted, columns_of_w(0, 0, 4)),
               "'w' is not the same on all ranks that hold it");
}

// 1 + 2^-12 is no number of bf16, whose 8 digits end at 2^-7: the nearest is 1.
TEST(ReshardTest, AFormatThatIsNotThereIsRoundedFromTheWidest) {
  const ScratchFolder folder;
  GivenState state;
  state.add(columns_of_w(0, 0, 4), std::vector<float>(8, 1 + 0x1p-12F));
  write_checkpoint(folder / "c", kHalves, state, "--save");
  const Checkpoint from(folder / "c");
  StateSlice target = columns_of_w(0, 0, 4);
  target.format = Dtype::bf16;
  target.count = 8;
  const execute::EncodedSlice numbers = Resharded(from, {target}).numbers(0);
  EXPECT_EQ(numbers.encoding, execute::Encoding::bf16);
  EXPECT_EQ(floats_in(numbers, 8), std::vector<float>(8, 1));
}

// Its mark stands in the lower half of binary32, which bf16 does not have: without care it would be
// an infinity.
TEST(ReshardTest, ANumberThatIsNoneStaysNone) {
  const auto nan = std::bit_cast<float>(0x7f800001U);
  const std::vector<float> numbers = {nan, 1};
  const execute::EncodedSlice kept = execute::encoded(numbers.data(), 2, Dtype::bf16);
  EXPECT_EQ(kept.encoding, execute::Encoding::bf16);
  const std::vector<float> back = floats_in(kept, 2);
  EXPECT_TRUE(std::isnan(back[0]));
  EXPECT_EQ(back[1], 1);
}

}  // namespace
}  // namespace placet::checkpoint
