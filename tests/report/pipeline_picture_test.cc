#include "report/pipeline_picture.h"

#include <gtest/gtest.h>

#include <string>

namespace placet {
namespace {

Slice slice(int stage, Doing doing, std::int64_t micro_batch, double begin, double end) {
  return {.stage = stage,
          .doing = doing,
          .micro_batch = micro_batch,
          .begin = seconds(begin),
          .end = seconds(end)};
}

/// Two stages, one micro-batch forward and back, and another forward of the first stage.
Simulation small_step() {
  Simulation simulated;
  simulated.step = seconds(10);
  simulated.stages.resize(2);
  simulated.slices = {slice(0, Doing::forward, 0, 0, 2),  slice(0, Doing::forward, 1, 2, 4),
                      slice(1, Doing::forward, 0, 2, 4),  slice(1, Doing::backward, 0, 4, 7),
                      slice(0, Doing::backward, 0, 7, 9), slice(0, Doing::update, -1, 9, 10)};
  return simulated;
}

std::string letters(const std::vector<Cell>& row) {
  std::string text;
  for (const Cell& cell : row) text += look_of(cell.shade).letter;
  return text;
}

// A column of one second each; what is in no slice is waiting.
TEST(PipelinePicture, AColumnShowsWhatTakesMostOfIt) {
  const Simulation simulated = small_step();
  EXPECT_EQ(letters(row_of(simulated, 0, {}, seconds(10), 10)), "FFFF...BBu");
  EXPECT_EQ(letters(row_of(simulated, 1, {}, seconds(10), 10)), "..FFBBB...");
  // Columns of 4 s: 4 of forward; 3 of waiting and 1 of backward.
  EXPECT_EQ(letters(row_of(simulated, 0, {}, seconds(8), 2)), "F.");
  // From 6 s on, half a second each.
  EXPECT_EQ(letters(row_of(simulated, 0, seconds(6), seconds(8), 4)), "..BB");
}

TEST(PipelinePicture, MicroBatchesOfOddNumberAreSmall) {
  const std::string text = picture_text(small_step(), {.width = 20});
  EXPECT_NE(text.find(" stage 0  FFff...BBu\n stage 1  ..FFBBB...\n"), std::string::npos) << text;
  EXPECT_NE(text.find(". waits for stages"), std::string::npos) << text;
  EXPECT_EQ(text.find("recomputation"), std::string::npos) << text;
}

// Units and waits within a pass are one; another micro-batch or direction begins another.
TEST(PipelinePicture, SlicesOfOnePassAreOne) {
  Simulation simulated = small_step();
  simulated.slices.insert(simulated.slices.begin() + 1, slice(0, Doing::collective, 0, 1, 1.5));
  simulated.slices.front().end = seconds(1);
  simulated.slices.insert(simulated.slices.begin() + 2, slice(0, Doing::forward, 0, 1.5, 2));
  const std::vector<PipelinePass> passes = passes_of(simulated, 0);
  ASSERT_EQ(passes.size(), 3U);
  EXPECT_TRUE(passes[0].forward);
  EXPECT_EQ(passes[0].micro_batch, 0);
  EXPECT_EQ(in_seconds(passes[0].end), 2);
  EXPECT_EQ(passes[1].micro_batch, 1);
  EXPECT_FALSE(passes[2].forward);
  EXPECT_EQ(in_seconds(passes[2].begin), 7);
}

TEST(PipelinePicture, StagesAreChosenEvenly) {
  EXPECT_EQ(shown_stages(3, 16), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(shown_stages(31, 4), (std::vector<int>{0, 10, 20, 30}));
  EXPECT_EQ(shown_stages(1, 16), (std::vector<int>{0}));
}

TEST(PipelinePicture, NothingIsDrawnOfHalfAStep) {
  Simulation simulated = small_step();
  simulated.left_out = 1;
  EXPECT_EQ(picture_text(simulated, {}), "");
}

}  // namespace
}  // namespace placet
