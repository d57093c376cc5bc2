#include "derive/buckets.h"

#include <gtest/gtest.h>

namespace placet {
namespace {

using Buckets = std::vector<BucketCount>;

// From the end: 4, 7 and 5 bytes in buckets of 8.
TEST(BucketTest, EndsBeforeOrAfterTheTensorThatFillsIt) {
  const std::vector<BucketTensors> tensors = {{.bytes = {5, 7}}, {.bytes = {4}}};
  EXPECT_EQ(fill_buckets(tensors, {.size = 8, .end = BucketEnd::after}),
            (Buckets{{11, 1}, {5, 1}}));
  EXPECT_EQ(fill_buckets(tensors, {.size = 8, .end = BucketEnd::before}),
            (Buckets{{4, 1}, {7, 1}, {5, 1}}));
}

// As forward takes them: 5 + 7, then 4.
TEST(BucketTest, MayBeFilledFromTheFirst) {
  const std::vector<BucketTensors> tensors = {{.bytes = {5, 7}}, {.bytes = {4}}};
  EXPECT_EQ(fill_buckets(tensors, {.size = 8, .end = BucketEnd::after, .from_first = true}),
            (Buckets{{12, 1}, {4, 1}}));
}

// A tensor of 20 bytes is never torn. before: what is in the bucket goes first.
TEST(BucketTest, ALargeTensorIsNotTorn) {
  const std::vector<BucketTensors> tensors = {{.bytes = {20, 3}}};
  EXPECT_EQ(fill_buckets(tensors, {.size = 8, .end = BucketEnd::after}), (Buckets{{23, 1}}));
  EXPECT_EQ(fill_buckets(tensors, {.size = 8, .end = BucketEnd::before}),
            (Buckets{{3, 1}, {20, 1}}));
}

// 6 tensors of 4 bytes, of three units: 4 alone in the first bucket of 2, then 8 and 8, and the
// last one.
TEST(BucketTest, TheFirstMayBeSmallerAndEqualOnesAreCounted) {
  const std::vector<BucketTensors> tensors = {{.bytes = {4, 4}, .units = 3}};
  EXPECT_EQ(fill_buckets(tensors, {.size = 8, .first = 2, .end = BucketEnd::after}),
            (Buckets{{4, 2}, {8, 2}}));
  EXPECT_EQ(fill_buckets({}, {.size = 8}), Buckets{});
}

}  // namespace
}  // namespace placet
