#include "model/dtype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "model/index.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::array kAll{Dtype::fp32,  Dtype::bf16, Dtype::fp16,  Dtype::fp8, Dtype::int64,
                          Dtype::int32, Dtype::int8, Dtype::uint8, Dtype::nf4, Dtype::fp4};

TEST(DtypeTest, NamesReadBack) {
  for (const Dtype dtype : kAll) EXPECT_EQ(dtype_named(name_of(dtype)), dtype);
  EXPECT_EQ(dtype_named("bfloat16"), Dtype::bf16);
  EXPECT_EQ(dtype_named("float32"), Dtype::fp32);
  EXPECT_EQ(dtype_named("bf17"), std::nullopt);
}

TEST(DtypeTest, BytesFillUpTheLastByte) {
  EXPECT_EQ(bytes_of(3, Dtype::nf4), bytes(2));  // 12 bits
  EXPECT_EQ(bytes_of(8, Dtype::nf4), bytes(4));
  EXPECT_EQ(bytes_of(3, Dtype::bf16), bytes(6));
  EXPECT_EQ(bytes_of(0, Dtype::fp32), bytes(0));
  // 70e9 parameters of two bytes.
  EXPECT_EQ(bytes_of(70'000'000'000, Dtype::bf16), gigabytes(140));
  EXPECT_THROW(bytes_of(INT64_MAX, Dtype::fp32), InputError);
  // Four bits each: half as many bytes as elements, although the bits would not fit in 64.
  EXPECT_EQ(bytes_of(INT64_MAX - 7, Dtype::fp4), bytes((INT64_MAX - 7) / 2));
}

TEST(IndexTest, EveryIndexHasItsOwnName) {
  std::vector<std::string_view> names;
  for (int i = 0; i < kIndexCount; ++i) names.push_back(name_of(static_cast<Index>(i)));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace placet
