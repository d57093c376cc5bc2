#include "units/trimmed.h"

#include <gtest/gtest.h>

namespace placet {
namespace {

TEST(TrimmedTest, BlanksAtBothEndsGo) {
  EXPECT_EQ(trimmed("  a b\t"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \t "), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(TrimmedTest, OnlyTheNamedOnesGo) {
  EXPECT_EQ(trimmed("a\n"), "a\n");
  EXPECT_EQ(trimmed("\r a\n", kWhitespace), "a");
  EXPECT_EQ(trimmed("\ta ", " "), "\ta");
}

}  // namespace
}  // namespace placet
