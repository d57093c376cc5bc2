// Blocks of stages as one text.
#include "interop/stage_text.h"

#include <gtest/gtest.h>

namespace placet {
namespace {

// E and L are no blocks; "(tt|)*2" is two stages of two.
TEST(StageTextTest, GroupsAndCountsArePlayedOut) {
  EXPECT_EQ(blocks_of_stages("Et*3|(tt|)*2,tL"), "3,2,2,1");
  EXPECT_EQ(blocks_of_stages("Ettt|tL"), "3,1");
}

// A group is written out before the counts in it: four stages of eight.
TEST(StageTextTest, GroupsHoldCounts) {
  EXPECT_EQ(blocks_of_stages("Et*8|(t*8|)*2,t*8L"), "8,8,8,8");
  EXPECT_EQ(blocks_of_stages("(t*2t|)*2t*3"), "3,3,3");
}

// The embedding, or the output with what predicts further tokens, alone.
TEST(StageTextTest, StagesMayHoldNoBlock) {
  EXPECT_EQ(blocks_of_stages("E|(tt|)*2mL"), "0,2,2,0");
  EXPECT_EQ(blocks_of_stages(stages_of_blocks("2,0")), "2,0");
}

TEST(StageTextTest, WhatIsNoStagesIsNotRead) {
  for (const char* text : {"", "t||t", "mE|t", "t*0|t", "(t|t", "t*99999999", "t;t", "(t#|)*2",
                           "(t|(t|)*2)*2t", "(t*8|)*9999t"}) {
    EXPECT_EQ(blocks_of_stages(text), std::nullopt) << text;
  }
}

TEST(StageTextTest, BlocksReadAsTheyAreWritten) {
  EXPECT_EQ(stages_of_blocks("3,2,1"), "Et*3|t*2|t*1L");
  EXPECT_EQ(blocks_of_stages(stages_of_blocks("17,15")), "17,15");
}

}  // namespace
}  // namespace placet
