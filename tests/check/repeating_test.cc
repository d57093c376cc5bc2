// Lists in which the rounds of a loop stand once.
#include "check/repeating.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace placet::testing {
namespace {

struct Item {
  char name = 'a';
  Arguments arguments;
};

std::vector<std::pair<char, std::int64_t>> read(const Repeating<Item>& list) {
  std::vector<std::pair<char, std::int64_t>> out;
  for (std::size_t k = 0; k < list.size(); ++k) {
    out.emplace_back(list[k].name, list[k].arguments.micro_batch);
  }
  return out;
}

Item item(char name, std::int64_t micro_batch) {
  return {.name = name, .arguments = {.unit = 0, .micro_batch = micro_batch}};
}

// a | x3 y0 z7, x4 y1 z7, x5 y2 z7 | b: z does not follow what the loop counts.
TEST(RepeatingTest, RoundsAreReadOneByOne) {
  Repeating<Item> list;
  list.add(item('a', 0));
  list.add_rounds({item('x', 3), item('y', 0), item('z', 7)},
                  {item('x', 4), item('y', 1), item('z', 7)}, 3);
  list.add(item('b', 9));
  const std::vector<std::pair<char, std::int64_t>> expected = {
      {'a', 0}, {'x', 3}, {'y', 0}, {'z', 7}, {'x', 4}, {'y', 1},
      {'z', 7}, {'x', 5}, {'y', 2}, {'z', 7}, {'b', 9}};
  EXPECT_EQ(read(list), expected);
}

// x5 x4 x3, without anything before it.
TEST(RepeatingTest, RoundsGoDownwardsToo) {
  Repeating<Item> list;
  list.add_rounds({item('x', 5)}, {item('x', 4)}, 3);
  EXPECT_EQ(read(list), (std::vector<std::pair<char, std::int64_t>>{{'x', 5}, {'x', 4}, {'x', 3}}));
}

TEST(RepeatingTest, RoundsOfNothingAreNothing) {
  Repeating<Item> list;
  list.add_rounds({}, {}, 7);
  EXPECT_EQ(list.size(), 0U);
  EXPECT_EQ(rounds_of(Loop{.variable = IndexTerm::Variable::micro_batch, .first = 4, .last = 2}),
            3);
}

}  // namespace
}  // namespace placet::testing
