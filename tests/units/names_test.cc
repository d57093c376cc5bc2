#include "units/names.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "units/error.h"

namespace placet {
namespace {

static_assert(std::is_trivially_copyable_v<AxisName> && sizeof(AxisName) == 32);
static_assert(std::is_trivially_copyable_v<Rank>);

template <class From, class To>
concept Converts = std::is_convertible_v<From, To>;

template <class A, class B>
concept Adds = requires(A a, B b) { a + b; };

static_assert(!Converts<const char*, AxisName>, "a text is not silently an axis");
static_assert(!Converts<int, Rank>, "a number is not silently a rank");
static_assert(!Adds<Rank, Rank> && !Adds<Rank, int>, "neighbours are found through the mesh");

TEST(AxisNameTest, KeepsItsText) {
  EXPECT_EQ(AxisName("tp").text(), "tp");
  EXPECT_EQ(AxisName("Shard-inner_2.x").text(), "Shard-inner_2.x");
  EXPECT_EQ(AxisName().text(), "");
  EXPECT_TRUE(AxisName().empty());
}

TEST(AxisNameTest, OrdersLikeItsText) {
  EXPECT_EQ(AxisName("dp"), AxisName("dp"));
  EXPECT_NE(AxisName("dp"), AxisName("dq"));
  EXPECT_LT(AxisName("tp"), AxisName("tp2"));  // a beginning comes first
  EXPECT_LT(AxisName("cp"), AxisName("dp"));
}

TEST(AxisNameTest, TakesThirtyOneCharactersAndNoMore) {
  const std::string longest(31, 'a');
  EXPECT_EQ(AxisName(longest).text(), longest);
  EXPECT_THROW(AxisName(longest + "a"), InputError);
}

TEST(AxisNameTest, RefusesWhatTheGrammarNeedsItself) {
  for (const char* text : {"", "1st", "a=b", "a b", "a:b", "a+b", "a;b", "é"}) {
    EXPECT_THROW(AxisName{text}, InputError) << text;
  }
}

TEST(AxisNameTest, TheErrorShowsTheName) {
  try {
    AxisName("a b");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "axis name: 'a b' is not valid; expected a letter, then letters, digits, '_', '-' "
                 "or '.', at most 31 characters");
  }
}

TEST(RankTest, ComparesByIndex) {
  EXPECT_EQ(Rank{3}, Rank{3});
  EXPECT_LT(Rank{3}, Rank{4});
}

}  // namespace
}  // namespace placet
