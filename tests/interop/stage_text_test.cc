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

TEST(StageTextTest, WhatIsNoStagesIsNotRead) {
  for (const char* text : {"", "E|t", "t*0|t", "(t|t", "t*99999999", "t;t"}) {
    EXPECT_EQ(blocks_of_stages(text), std::nullopt) << text;
  }
}

TEST(StageTextTest, BlocksReadAsTheyAreWritten) {
  EXPECT_EQ(stages_of_blocks("3,2,1"), "Et*3|t*2|t*1L");
  EXPECT_EQ(blocks_of_stages(stages_of_blocks("17,15")), "17,15");
}

}  // namespace
}  // namespace placet
