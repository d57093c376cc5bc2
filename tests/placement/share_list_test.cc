#include "placement/share_list.h"

#include <gtest/gtest.h>

#include <random>

#include "placement/grammar.h"
#include "placement/words.h"

namespace placet {
namespace {

using Shares = std::vector<std::int64_t>;

Shares read(const std::string& text) {
  SourceText source(text);
  return read_shares(source);
}

std::string plain(const Shares& shares) {
  std::string text;
  for (const std::int64_t share : shares) text += (text.empty() ? "" : ",") + std::to_string(share);
  return text;
}

TEST(ShareListTest, RunsAndGroupsAreWhatTheyRepeat) {
  EXPECT_EQ(read("22,20,20,18"), (Shares{22, 20, 20, 18}));
  EXPECT_EQ(read("1,2x5,1"), (Shares{1, 2, 2, 2, 2, 2, 1}));
  EXPECT_EQ(read("(3x2,7)x2"), (Shares{3, 3, 7, 3, 3, 7}));
  EXPECT_EQ(read(" 1 , ( 2 , 3 ) x 2 , 4 x 1"), (Shares{1, 2, 3, 2, 3, 4}));
}

// Of a single share, two stay as they are.
TEST(ShareListTest, IsAsShortAsItCanBeSaid) {
  EXPECT_EQ(print_shares({22, 20, 20, 18}), "22,20,20,18");
  EXPECT_EQ(print_shares({2, 2}), "2,2");
  EXPECT_EQ(print_shares({3, 7, 3, 7}), "3,7,3,7");
  EXPECT_EQ(print_shares({10, 10}), "10,10");
  EXPECT_EQ(print_shares({1, 2, 2, 2, 2, 2, 1}), "1,2x5,1");
  EXPECT_EQ(print_shares({3, 3, 7, 7, 3, 3, 7, 7, 3, 3, 7, 7}), "(3,3,7,7)x3");
  EXPECT_EQ(print_shares({2, 3, 7, 7, 3, 3, 7, 7, 3, 3, 8, 7}), "2,3,(7,7,3,3)x2,8,7");
  EXPECT_EQ(print_shares({1, 1, 1, 5, 1, 1, 1, 5}), "(1x3,5)x2");
}

// What is printed for programs has each share; people see them repeated.
TEST(ShareListTest, IsShortForPeople) {
  const std::string text =
      print_placement(testing::parse("pp=4[5x4]:in-turn"), testing::vocabulary());
  EXPECT_EQ(text, "pp=4[5,5,5,5]:in-turn");
  EXPECT_EQ(with_short_shares(text), "pp=4[5x4]:in-turn");
  EXPECT_EQ(with_short_shares("a=2[1,1] b=3[2,2,2]:x c=2:y"), "a=2[1,1] b=3[2x3]:x c=2:y");
}

TEST(ShareListTest, WhatIsWrongIsSaidWhereItStands) {
  const auto fault = [](const std::string& text) -> InputFault {
    try {
      testing::parse("pp=4[" + text + "]:in-turn");
    } catch (const InputError& error) {
      return error.fault();
    }
    return {};
  };
  EXPECT_EQ(fault("1x0").problem, "is not how often it comes");
  EXPECT_EQ(fault("1x").problem, "is not how often it comes");
  EXPECT_EQ(fault("(1,2)").allowed, "'x' and how often the group comes");
  EXPECT_EQ(fault("(1,2x3").allowed, "',' and a further share, or ')'");
  EXPECT_EQ(fault("((1,2)x2)x2").problem, "is not a share");
  EXPECT_EQ(fault("1x16384").problem, "");
  EXPECT_EQ(fault("1x16384,1").problem, "too many shares");
  EXPECT_EQ(fault("(1,2)x16384").problem, "too many shares");
  EXPECT_EQ(fault("(1x16384)x16384").problem, "too many shares");
}

// Lists of few numbers, in which much comes again.
TEST(ShareListTest, RandomListsReadBackAndAreNeverLonger) {
  std::mt19937 random(3);
  const auto pick = [&](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
  for (int i = 0; i < 3'000; ++i) {
    const int numbers = pick(3);
    Shares group(static_cast<std::size_t>(pick(6)));
    for (std::int64_t& share : group) share = pick(numbers) * (pick(9) == 1 ? 100 : 1);
    Shares shares;
    for (int n = pick(8); n > 0; --n) {
      shares.insert(shares.end(), group.begin(), group.end());
      if (pick(5) == 1) shares.push_back(pick(numbers));
    }
    const std::string text = print_shares(shares);
    ASSERT_EQ(read(text), shares) << text;
    ASSERT_LE(text.size(), plain(shares).size()) << text;
  }
}

TEST(ShareListTest, AsManyAsThereMayBeArePrintedAtOnce) {
  EXPECT_EQ(print_shares(Shares(kMostShares, 7)), "7x16384");
  Shares rising(kMostShares);
  for (std::size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<std::int64_t>(i);
  EXPECT_EQ(print_shares(rising), plain(rising));
}

}  // namespace
}  // namespace placet
