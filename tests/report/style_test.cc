#include "report/style.h"

#include <gtest/gtest.h>

#include <sstream>

#include "report/human.h"

namespace placet {
namespace {

constexpr TextStyle kPlain{};
constexpr TextStyle kTerminal{.colour = true, .unicode = true, .width = 80};

TEST(BarTest, AsciiInAPipe) {
  EXPECT_EQ(bar(kPlain, Ink::plain, 0.5, 8), "####    ");
  EXPECT_EQ(bar(kPlain, Ink::plain, 0.001, 8), "#       ") << "something is never nothing";
  EXPECT_EQ(bar(kPlain, Ink::plain, 0, 4), "    ");
  EXPECT_EQ(bar(kPlain, Ink::plain, 7, 4), "####") << "no longer than its place";
}

// 0.3 of 10 cells are 24 eighths: 3 whole cells. 0.35 are 28: 3 and a half.
TEST(BarTest, EighthsOnATerminal) {
  const TextStyle style{.unicode = true};
  EXPECT_EQ(bar(style, Ink::plain, 0.3, 10), "███       ");
  EXPECT_EQ(bar(style, Ink::plain, 0.35, 10), "███▌      ");
}

TEST(BarTest, PartsFollowEachOther) {
  const std::vector<BarPart> parts = {{.letter = 'P', .part = 0.25}, {.letter = 'G', .part = 0.5}};
  EXPECT_EQ(stacked_bar(kPlain, parts, 8), "PPGGGG..");
}

TEST(InkTest, OnlyWithColour) {
  EXPECT_EQ(inked(kPlain, Ink::red, "x"), "x");
  EXPECT_EQ(inked(kTerminal, Ink::red, "x"), "\x1b[31mx\x1b[0m");
}

TEST(TableTest, NumbersStandRight) {
  EXPECT_EQ(table(kPlain, {{.title = "name"}, {.title = "n", .right = true}},
                  {{"a", "1"}, {"bb", "10"}}, 2),
            "  name   n\n"
            "  a      1\n"
            "  bb    10\n");
}

TEST(TableTest, WhatMayShrinkIsCutAtTheWidth) {
  const TextStyle narrow{.width = 40};
  const std::string text = table(narrow, {{.title = "name"}, {.title = "long", .may_shrink = true}},
                                 {{"a", std::string(60, 'x')}}, 0);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), 40U);
  EXPECT_NE(text.find("xxx..."), std::string::npos);
}

TEST(WrappedTest, BreaksBetweenWords) {
  const TextStyle narrow{.width = 40};
  EXPECT_EQ(wrapped(narrow, "aaaaaaaaaa bbbbbbbbbb cccccccccc dddddddddd", 4),
            "aaaaaaaaaa bbbbbbbbbb cccccccccc\n    dddddddddd");
}

// 10 + 2 + 20 + 2 + 20 columns are 14 too many: the last one that may go is left out, and the first
// of them stays, since 10 + 2 + 20 have room.
TEST(TableTest, TheLastColumnThatMayGoIsLeftOut) {
  const TextStyle narrow{.width = 40};
  const std::string wide(20, 'x');
  const std::string text = table(
      narrow, {{.title = "name"}, {.title = "b", .may_go = true}, {.title = "c", .may_go = true}},
      {{"aaaaaaaaaa", wide, wide}}, 0);
  EXPECT_EQ(text, "name        b\naaaaaaaaaa  " + wide + "\n");
}

}  // namespace
}  // namespace placet
