#include "units/number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace placet {
namespace {

TEST(NumberTest, TakesTheWholeText) {
  EXPECT_EQ(number_in<int>("12"), 12);
  EXPECT_EQ(number_in<int>("-3"), -3);
  EXPECT_EQ(number_in<double>("1e3"), 1000);
  for (const char* text : {"", " 12", "12 ", "12x", "1e3", "99999999999999999999"}) {
    EXPECT_EQ(number_in<std::int64_t>(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace placet
