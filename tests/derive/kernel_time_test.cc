#include "derive/kernel_time.h"

#include <gtest/gtest.h>

namespace placet {
namespace {

// 100 multiprocessors of one TFLOP/s each; memory that never holds up.
DeviceRates device() {
  DeviceRates rates;
  rates.multiprocessors = 100;
  rates.matmul[static_cast<std::size_t>(MatmulFormat::bf16)] = teraflops_per_second(100);
  rates.tiles = {{.rows = 128, .columns = 256}};
  rates.memory = gigabytes_per_second(1e9);
  rates.unaligned = 0.5;
  return rates;
}

KernelWork product(std::int64_t m, std::int64_t n, std::int64_t k) {
  KernelWork kernel{.kind = KernelWork::Kind::product, .shape = {.m = m, .n = n, .k = k}};
  kernel.flops = flops_of(kernel.shape);
  return kernel;
}

// 10 x 10 tiles on 100 multiprocessors: one wave, 2 x 128 x 256 x 256 FLOPs each at 1 TFLOP/s.
TEST(ProductTime, AFullWaveRunsAtTheRate) {
  const Seconds time = product_time(device(), product(1280, 2560, 256));
  EXPECT_NEAR(in_seconds(time), 2.0 * 128 * 256 * 256 / 1e12, 1e-12);
}

// One column of tiles more: a second wave with ten tiles takes as long as the first.
TEST(ProductTime, ALastWaveCostsAWholeOne) {
  const Seconds full = product_time(device(), product(1280, 2560, 256));
  const Seconds more = product_time(device(), product(1280, 2561, 256));
  EXPECT_NEAR(more / full, 2.0, 1e-9);
}

// 10 tiles of depth 4096 leave nine multiprocessors in ten idle; in eight parts of 512, 80 work.
TEST(ProductTime, TheDepthIsCutWhereTilesAreFew) {
  const Seconds time = product_time(device(), product(1280, 256, 4096));
  EXPECT_NEAR(in_seconds(time), 2.0 * 128 * 256 * 512 / 1e12, 1e-9);
}

TEST(ProductTime, ATilesPrologueCountsAsDepth) {
  DeviceRates rates = device();
  rates.fill_depth = 64;
  const Seconds time = product_time(rates, product(1280, 2560, 256));
  EXPECT_NEAR(in_seconds(time), 2.0 * 128 * 256 * (256 + 64) / 1e12, 1e-12);
}

// What a tile takes to begin and end is a time: 64 of depth in bf16 are 128 at twice the rate.
TEST(ProductTime, ATilesPrologueTakesAsLongInFewerBits) {
  DeviceRates rates = device();
  rates.fill_depth = 64;
  rates.matmul[static_cast<std::size_t>(MatmulFormat::fp8)] = teraflops_per_second(200);
  KernelWork narrow = product(1280, 2560, 256);
  narrow.format = MatmulFormat::fp8;
  EXPECT_NEAR(in_seconds(product_time(rates, narrow)), 2.0 * 128 * 256 * (256 + 128) / 2e12, 1e-12);
}

TEST(ProductTime, OddRowsRunAtAPartOfTheRate) {
  KernelWork odd = product(1280, 2560, 256);
  odd.aligned = false;
  EXPECT_NEAR(product_time(device(), odd) / product_time(device(), product(1280, 2560, 256)), 2.0,
              1e-9);
}

// One second of arithmetic and half a second of sums: one after the other, or side by side.
TEST(ProductTime, SumsOfGradientsMayHideBehindTheArithmetic) {
  DeviceRates rates = device();
  rates.memory = gigabytes_per_second(1);
  KernelWork kernel = product(1280, 2560, 256);
  const Seconds alone = product_time(rates, kernel);
  kernel.added_bytes = 0.5 * in_seconds(alone) * 1e9;
  EXPECT_NEAR(product_time(rates, kernel) / alone, 1.5, 1e-9);
  rates.overlaps_epilogue = true;
  EXPECT_NEAR(product_time(rates, kernel) / alone, 1, 1e-9);
}

// 2e12 FLOPs at the 10 TFLOP/s that the device's curve says, or at 12 % of 100.
TEST(ScanTime, FollowsTheDevicesCurve) {
  DeviceRates rates = device();
  const KernelWork kernel{.flops = 2e12, .head_size = 64, .length = 128, .scan = true};
  EXPECT_NEAR(in_seconds(kernel_time(rates, "flash-2", kernel)), 2.0 / 12, 1e-9);
  const Curve ten{.points = {{.x = 128, .y = 10}}};
  rates.attention = {
      {.kernel = "chunked-scan", .heads = {{.size = 64, .forward = ten, .backward = ten}}}};
  EXPECT_NEAR(in_seconds(kernel_time(rates, "flash-2", kernel)), 0.2, 1e-9);
}

// The longer of arithmetic and memory: 4 GB at 2 GB/s.
TEST(KernelTime, BytesBoundWhatArithmeticDoesNot) {
  DeviceRates rates = device();
  rates.memory = gigabytes_per_second(2);
  KernelWork kernel = product(1280, 2560, 256);
  kernel.bytes = 4e9;
  EXPECT_NEAR(in_seconds(kernel_time(rates, "", kernel)), 2.0, 1e-12);
  const KernelWork stream{.bytes = 1e9};
  EXPECT_NEAR(in_seconds(kernel_time(rates, "", stream)), 0.5, 1e-12);
}

TEST(KernelTime, AKernelTakesItsLeastTimeUnlessItRunsInAnother) {
  DeviceRates rates = device();
  rates.kernel = microseconds(3);
  EXPECT_EQ(kernel_time(rates, "", KernelWork{.bytes = 1}), microseconds(3));
  EXPECT_LT(kernel_time(rates, "", KernelWork{.bytes = 1, .launches = 0}), microseconds(1));
}

// 200 TFLOP/s known for 1024 tokens: 1 TFLOP takes 5 ms. Of an unknown kernel: half the rate.
TEST(KernelTime, AttentionFollowsItsCurve) {
  DeviceRates rates = device();
  const Curve curve{{{1024, 200}}};
  rates.attention = {{.kernel = "k", .heads = {{.size = 64, .forward = curve, .backward = curve}}}};
  const KernelWork kernel{
      .kind = KernelWork::Kind::attention, .flops = 1e12, .head_size = 64, .length = 1024};
  EXPECT_NEAR(in_milliseconds(kernel_time(rates, "k", kernel)), 5.0, 1e-9);
  EXPECT_NEAR(in_milliseconds(kernel_time(rates, "other", kernel)), 20.0, 1e-9);
}

}  // namespace
}  // namespace placet
