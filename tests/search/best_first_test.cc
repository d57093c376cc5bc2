#include "search/best_first.h"

#include <gtest/gtest.h>

namespace placet {
namespace {

// Two levels: a number of tens, then a number of ones; a leaf is worth their sum. Bounds are the
// tens, plus `too_much`.
struct Digits {
  struct Node {
    double bound = 0;
    std::int64_t leaves = 0;
    int tens = -1;
    int ones = -1;
  };
  struct Answer {
    double value = 0;
    bool same_as(const Answer& other) const { return value == other.value; }
    friend bool operator<(const Answer& a, const Answer& b) { return a.value < b.value; }
  };
  double too_much = 0;

  Opened<Node, Answer> open(const Node& node, double) const {
    Opened<Node, Answer> out;
    if (node.ones >= 0) {
      out.visited = 1;
      out.answer = Answer{.value = 10.0 * node.tens + node.ones};
      return out;
    }
    for (int d = 0; d < 3; ++d) {
      if (node.tens < 0) {
        out.children.push_back({.bound = 10.0 * d, .leaves = 3, .tens = d});
      } else {
        const double value = 10.0 * node.tens + d;
        out.children.push_back(
            {.bound = value + too_much, .leaves = 1, .tens = node.tens, .ones = d});
      }
    }
    return out;
  }
  static std::vector<Node> roots() { return {{.leaves = 9}}; }
};

TEST(BestFirst, LooksAtNoMoreThanItMust) {
  // The best three are 0, 1, 2, all below the first ten: the six others are bounded.
  const auto found = BestFirst<Digits>({}, {.top = 3, .width = 1}).run(Digits::roots());
  ASSERT_EQ(found.best.size(), 3U);
  EXPECT_EQ(found.best[0].value, 0);
  EXPECT_EQ(found.best[2].value, 2);
  EXPECT_EQ(found.visited, 3);
  EXPECT_EQ(found.bounded, 6);
  EXPECT_TRUE(found.exact);
}

/// Nine leaves that are one to whoever asks.
struct OneKind : Digits {
  struct Answer {
    double value = 0;
    bool same_as(const Answer&) const { return true; }
    friend bool operator<(const Answer& a, const Answer& b) { return a.value < b.value; }
  };
  Opened<Node, Answer> open(const Node& node, double cutoff) const {
    Opened<Node, Digits::Answer> digits = Digits::open(node, cutoff);
    Opened<Node, Answer> out{.children = std::move(digits.children), .visited = digits.visited};
    if (digits.answer) out.answer = Answer{.value = digits.answer->value};
    return out;
  }
  static bool all_same_as(const Node&, const Answer&) { return true; }
};

// Three are wanted, and there is one: once 0 is found, no other can be better.
TEST(BestFirst, OfLeavesThatAreTheSameOnlyBetterOnesCount) {
  const OneKind problem;
  const auto found =
      BestFirst<OneKind>(problem, {.top = 3, .width = 1}).run({{.bound = 0, .leaves = 9}});
  ASSERT_EQ(found.best.size(), 1U);
  EXPECT_EQ(found.best.front().value, 0);
  EXPECT_EQ(found.visited, 1);
  EXPECT_EQ(found.bounded, 8);
}

TEST(BestFirst, TakesNothingBeyondTheCutoff) {
  const auto found =
      BestFirst<Digits>({}, {.top = 3, .width = 1, .cutoff = 1}).run(Digits::roots());
  EXPECT_EQ(found.best.size(), 2U);  // 0 and 1
  EXPECT_EQ(found.visited + found.bounded, 9);
}

TEST(BestFirst, FindsOutABoundThatIsTooLarge) {
  const Digits wrong{.too_much = 0.5};
  EXPECT_THROW(BestFirst<Digits>(wrong, {.top = 1, .width = 1}).run(Digits::roots()),
               InternalError);
}

TEST(BestFirst, SaysThatItWasStopped) {
  const auto found = BestFirst<Digits>({}, {.top = 1, .width = 1, .stopped = [] { return true; }})
                         .run(Digits::roots());
  EXPECT_FALSE(found.exact);
  EXPECT_EQ(found.visited + found.bounded, 9);
}

}  // namespace
}  // namespace placet
