#include "profile/lengths.h"

#include <gtest/gtest.h>

namespace placet {
namespace {

// 100 tokens over 8 devices: 13 on the fullest.
TEST(Lengths, TokensAtOnce) {
  EXPECT_EQ(tokens_at_once(100, 8), 13);
  EXPECT_EQ(tokens_at_once(32, 1), 32);
}

TEST(Lengths, ShortSamplesShareADeviceAndLongOnesShareSeveral) {
  EXPECT_EQ(place_of_length(3, 8).samples, 2);
  EXPECT_EQ(place_of_length(3, 8).devices, 1);
  EXPECT_EQ(place_of_length(8, 8).samples, 1);
  EXPECT_EQ(place_of_length(9, 8).devices, 2);
  EXPECT_EQ(place_of_length(9, 8).samples, 1);
  EXPECT_EQ(slots_of_length(4, 8), Rational(1, 2));
  EXPECT_EQ(slots_of_length(20, 8), Rational(3));
}

// 8 samples over 4 devices of 4096 tokens: four short ones take 4 rounds of a device, four long
// ones 16: 20 in all, 5 of the longest. Two such samples a round: 6.
TEST(Lengths, SamplesOfTheLongest) {
  const std::vector<SampleLength> lengths = {{.tokens = 4096, .share = Rational(1, 2)},
                                             {.tokens = 16384, .share = Rational(1, 2)}};
  EXPECT_EQ(mean_slots(lengths, 4096), Rational(5, 2));
  EXPECT_EQ(samples_of_longest(lengths, 8, 4, 1), 5);
  EXPECT_EQ(samples_of_longest(lengths, 8, 4, 2), 6);
}

}  // namespace
}  // namespace placet
