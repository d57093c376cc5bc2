// Lists of items that share their beginnings say the same as plain lists.
#include "check/items.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "check/nodes.h"
#include "check/values.h"

namespace placet::testing {
namespace {

Item item(NodeId node, std::int64_t factor = 1) {
  return {.node = node, .factor = Rational(factor)};
}

Item part(NodeId node) {
  return {.node = node, .shares = {{.of = node, .open = {{.node = node, .cuts = {{.axis = 0}}}}}}};
}

Tensor sum_of(const std::vector<Item>& items) {
  Tensor sum;
  for (const Item& one : items) add_to(sum, Tensor{.items = {one}});
  return sum;
}

/// Items of the nodes below `count`, with the factors that `factor_of` gives.
template <class Factor>
std::vector<Item> first_items(NodeId count, Factor factor_of) {
  std::vector<Item> items;
  items.reserve(static_cast<std::size_t>(count));
  for (NodeId node = 0; node < count; ++node) items.push_back(item(node, factor_of(node)));
  return items;
}

std::vector<Item> first_items(NodeId count) {
  return first_items(count, [](NodeId) { return 1; });
}

std::vector<Item> listed(const Items& items) { return {items.begin(), items.end()}; }

// Twenty items are two blocks of eight and four more: each stands at its place.
TEST(Items, StandInOrder) {
  const std::vector<Item> plain = first_items(20);
  const Items items(plain);
  ASSERT_EQ(items.size(), 20U);
  EXPECT_EQ(items.front().node, 0);
  EXPECT_EQ(items.back().node, 19);
  EXPECT_EQ(items[7], plain[7]);
  EXPECT_EQ(items[8], plain[8]);
  EXPECT_EQ(listed(items), plain);
  EXPECT_TRUE(items.has_node(0));
  EXPECT_FALSE(items.has_node(20));
}

// 0 + 1 + ... + 19 is the same from the front, from the back and from the middle, and has one hash.
TEST(Items, AreEqualInWhateverOrderTheyWereAdded) {
  std::vector<Item> plain = first_items(20, [](NodeId node) { return node % 3 + 1; });
  const Tensor forwards = sum_of(plain);
  std::ranges::reverse(plain);
  const Tensor backwards = sum_of(plain);
  std::ranges::rotate(plain, plain.begin() + 7);
  EXPECT_EQ(forwards, backwards);
  EXPECT_EQ(forwards, sum_of(plain));
  EXPECT_EQ(forwards.items.hash(), backwards.items.hash());
}

// 5 - 5: what is taken out of the middle leaves the list that never had it, and of the last one
// nothing.
TEST(Items, CancelAnywhere) {
  std::vector<Item> plain = first_items(17);
  Tensor sum = sum_of(plain);
  add_to(sum, Tensor{.items = {item(5, -1)}});
  plain.erase(plain.begin() + 5);
  EXPECT_EQ(listed(sum.items), plain);
  EXPECT_EQ(sum, sum_of(plain));
  for (const Item& one : plain) add_to(sum, Tensor{.items = {item(one.node, -1)}});
  EXPECT_TRUE(sum.items.empty());
}

/// Sixty times one of 40 values, added or taken off: as counts, and as two lists that are added up.
std::pair<std::vector<Item>, Tensor> random_sum(std::mt19937& random) {
  std::vector<std::int64_t> counts(40, 0);
  std::vector<Tensor> sums(2);
  for (int added = 0; added < 60; ++added) {
    const auto node = static_cast<NodeId>(random() % counts.size());
    const std::int64_t factor = random() % 2 == 0 ? 1 : -1;
    counts[static_cast<std::size_t>(node)] += factor;
    add_to(sums[random() % 2], Tensor{.items = {item(node, factor)}});
  }
  add_to(sums[0], sums[1]);
  std::vector<Item> expected =
      first_items(40, [&](NodeId node) { return counts[static_cast<std::size_t>(node)]; });
  std::erase_if(expected, [](const Item& one) { return one.factor == Rational(0); });
  return {expected, sums[0]};
}

TEST(Items, SayWhatCountsSay) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const auto [expected, sum] = random_sum(random);
    ASSERT_EQ(listed(sum.items), expected) << "round " << round;
    ASSERT_EQ(sum.items, Items(expected)) << "round " << round;
  }
}

/// A list of twenty with one that is another, in its first block, its second, or behind these.
class ItemsWithOne : public ::testing::TestWithParam<NodeId> {
 protected:
  static Items with(Item one) {
    std::vector<Item> plain = first_items(20);
    plain[static_cast<std::size_t>(GetParam())] = std::move(one);
    return Items(plain);
  }
};

TEST_P(ItemsWithOne, ThatIsIncomplete) {
  Items items = with(part(GetParam()));
  EXPECT_FALSE(items.all_complete());
  EXPECT_FALSE(items.any_open_maximum());
  const auto is_incomplete = [](const Item& one) { return !one.complete(); };
  EXPECT_EQ(std::count_if(items.first_in_doubt(), items.end(), is_incomplete), 1);
  items.edit_incomplete([&](std::vector<Item>& end) {
    std::ranges::find_if(end, is_incomplete)->combine = Combine::max;
  });
  EXPECT_TRUE(items.any_open_maximum());
  EXPECT_EQ(items.size(), 20U);
}

// Factors are alike but for their sign.
TEST_P(ItemsWithOne, ThatHasAnotherFactor) {
  EXPECT_TRUE(with(item(GetParam(), -1)).all_complete());
  EXPECT_TRUE(with(item(GetParam(), -1)).factors_alike());
  EXPECT_FALSE(with(item(GetParam(), 2)).factors_alike());
}

TEST_P(ItemsWithOne, ThatIsOdd) {
  Item one = item(GetParam());
  EXPECT_FALSE(with(one).any_odd());
  one.odd = true;
  EXPECT_TRUE(with(one).any_odd());
}

INSTANTIATE_TEST_SUITE_P(Places, ItemsWithOne, ::testing::Values(0, 7, 8, 19));

// A hundred thousand items end without a stack as deep as they are many.
TEST(Items, EndOneAfterTheOther) {
  Items items;
  for (NodeId node = 0; node < 100'000; ++node) items.push_back(item(node));
  const Items copy = items;
  items = {};
  EXPECT_EQ(copy.size(), 100'000U);
}

// A stream after each of n blocks: n sums of up to n values, in room for as many as n items.
TEST(Items, ShareTheirBeginnings) {
  Nodes nodes;
  Tensor stream;
  for (NodeId node = 0; node < 50; ++node) {
    add_to(stream, Tensor{.items = {item(node)}});
    Items own(listed(stream.items));  // as someone else makes it
    nodes.share_beginning(stream.items);
    nodes.share_beginning(own);
    EXPECT_EQ(own, stream.items);
    const bool long_enough = node >= static_cast<NodeId>(Items::kBlock);
    EXPECT_EQ(&own[0] == &stream.items[0], long_enough) << node;
  }
}

}  // namespace
}  // namespace placet::testing
