#include "units/nearest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace placet {
namespace {

TEST(EditDistanceTest, CountsEachKindOfSlipOnce) {
  EXPECT_EQ(edit_distance("ring", "ring"), 0U);
  EXPECT_EQ(edit_distance("rng", "ring"), 1U);    // insert i
  EXPECT_EQ(edit_distance("riing", "ring"), 1U);  // delete i
  EXPECT_EQ(edit_distance("rong", "ring"), 1U);   // replace o
  EXPECT_EQ(edit_distance("rnig", "ring"), 1U);   // swap n and i
  EXPECT_EQ(edit_distance("", "ring"), 4U);
  EXPECT_EQ(edit_distance("ring", ""), 4U);
}

TEST(EditDistanceTest, AddsUpSlips) {
  // kitten -> sitten -> sittin -> sitting
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  // No part is edited twice: "ca" -> "ac" -> "abc" would be 2, alignment gives 3.
  EXPECT_EQ(edit_distance("ca", "abc"), 3U);
}

const std::vector<std::string> kDevices = {"a100-40gb-sxm", "a100-80gb-sxm", "h100-sxm",
                                           "h200-sxm"};

TEST(NearestTest, FindsASlip) {
  EXPECT_EQ(nearest("h100-smx", kDevices), "h100-sxm");
  EXPECT_EQ(nearest("H200-SXM", kDevices), "h200-sxm");
}

TEST(NearestTest, FindsTheShortestContinuation) {
  EXPECT_EQ(nearest("a100", kDevices), "a100-40gb-sxm");
  EXPECT_EQ(nearest("h1", kDevices), "h100-sxm");
}

TEST(NearestTest, OfEqualsTheFirst) {
  // One replacement leads to either.
  EXPECT_EQ(nearest("h300-sxm", kDevices), "h100-sxm");
}

TEST(NearestTest, SaysNothingWhereNothingIsNear) {
  EXPECT_EQ(nearest("tpu-v5p", kDevices), "");
  EXPECT_EQ(nearest("", kDevices), "");
  EXPECT_EQ(nearest("h100", {}), "");
}

TEST(NearestTest, SaysNothingOfWhatIsNoWord) {
  EXPECT_EQ(nearest(std::string(3'000'000, 'h'), kDevices), "");
}

}  // namespace
}  // namespace placet
