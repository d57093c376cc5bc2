#include "cluster/rates.h"

#include <gtest/gtest.h>

namespace placet {
namespace {

TEST(Curve, IsLinearInTheLogarithmBetweenItsPoints) {
  const Curve curve{{{1, 10}, {4, 30}}};
  EXPECT_DOUBLE_EQ(value_at(curve, 2), 20);  // halfway from log2 1 to log2 4
  EXPECT_DOUBLE_EQ(value_at(curve, 0.5), 10);
  EXPECT_DOUBLE_EQ(value_at(curve, 100), 30);
  EXPECT_DOUBLE_EQ(value_at(Curve{}, 1), 0);
}

TEST(Rates, AFormatThatADeviceLacksRunsAtTheNextWiderOne) {
  DeviceRates rates;
  rates.matmul[static_cast<std::size_t>(MatmulFormat::bf16)] = teraflops_per_second(100);
  EXPECT_EQ(matmul_rate(rates, MatmulFormat::fp8), teraflops_per_second(100));
  EXPECT_EQ(matmul_rate(rates, MatmulFormat::fp4), teraflops_per_second(100));
  EXPECT_EQ(matmul_rate(rates, MatmulFormat::fp16), teraflops_per_second(100));
  rates.matmul[static_cast<std::size_t>(MatmulFormat::fp8)] = teraflops_per_second(180);
  EXPECT_EQ(matmul_rate(rates, MatmulFormat::fp8), teraflops_per_second(180));
}

// A kernel pads a head of 96 to 128: three quarters of its work is of use.
TEST(Rates, HeadsBetweenKnownSizesArePadded) {
  const Curve curve{{{1024, 200}, {4096, 240}}};
  const AttentionRates rates{.kernel = "k",
                             .heads = {{.size = 64, .forward = curve, .backward = curve},
                                       {.size = 128, .forward = curve, .backward = curve}}};
  EXPECT_DOUBLE_EQ(attention_tflops(rates, 96, 1024, false), 150);
  EXPECT_DOUBLE_EQ(attention_tflops(rates, 128, 2048, true), 220);
  EXPECT_DOUBLE_EQ(attention_tflops(rates, 256, 1024, false), 200);
}

TEST(Rates, KernelsAreFoundByName) {
  DeviceRates rates;
  rates.attention = {{.kernel = "a", .heads = {}}, {.kernel = "b", .heads = {}}};
  ASSERT_NE(attention_rates(rates, "b"), nullptr);
  EXPECT_EQ(attention_rates(rates, "b")->kernel, "b");
  EXPECT_EQ(attention_rates(rates, "c"), nullptr);
}

}  // namespace
}  // namespace placet
