// What devices, links and engines say about time.
#include "catalog/device_rates.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/catalog_files.h"
#include "catalog/cluster_catalog.h"
#include "catalog/profile_catalog.h"

namespace placet {
namespace {

TEST(DeviceRatesTest, EveryDeviceCanBeTimed) {
  for (const std::string& name : names_in(repository_catalog(), "hardware/devices")) {
    const Device device = load_device(repository_catalog(), name, "test").device;
    const DeviceRates& rates = device.rates;
    const FlopsPerSecond reached = matmul_rate(rates, MatmulFormat::bf16);
    EXPECT_GT(reached, FlopsPerSecond()) << name;
    if (device.peak_bf16 > FlopsPerSecond()) {
      EXPECT_LE(reached, device.peak_bf16) << name;
    }
    EXPECT_GT(rates.memory, BytesPerSecond()) << name;
    EXPECT_LE(rates.memory, device.memory_bandwidth) << name;
    EXPECT_FALSE(rates.tiles.empty()) << name;
    EXPECT_GT(rates.multiprocessors, 1) << name;
  }
}

// Figures that nobody has measured say so.
TEST(DeviceRatesTest, WhatStandsInIsListedAsSupposed) {
  const DeviceSheet sheet = load_device(repository_catalog(), "l4", "test");
  const bool supposed = std::ranges::any_of(sheet.facts, [](const Fact& fact) {
    return fact.key == "compute.matmul_tflops.bf16" && fact.source.starts_with("supposed: ");
  });
  EXPECT_TRUE(supposed);
}

TEST(DeviceRatesTest, MeasuredAllReducesBelongToTheirLink) {
  const DeviceGroup group = load_group(repository_catalog(), "a100-80gb-sxm", 16, "test");
  const std::vector<BusCurve>& curves = group.levels.front().all_reduce;
  ASSERT_EQ(curves.size(), 7U);  // 2 to 8 devices
  EXPECT_EQ(curves.back().group, 8);
  EXPECT_NEAR(value_at(curves.back().gigabytes_per_second, 1073741824), 229.35, 1e-9);
  EXPECT_TRUE(group.levels.back().all_reduce.empty());
}

TEST(DeviceRatesTest, CurvesRise) {
  const auto complaint = [](const std::string& points) {
    const Document document{
        .where = "link.json",
        .value = parse_json(R"({"all_reduce": {"groups": [{"devices": 2, "bytes_and_gb_s": )" +
                                points + R"(}], "source": "s", "date": "2024"}})",
                            "link.json")};
    std::vector<Fact> facts;
    return message_of([&] { read_bus_curves(Reader(document), facts); });
  };
  const std::string path = "link.json: all_reduce.groups[0].bytes_and_gb_s";
  EXPECT_EQ(complaint("[[2, 1], [1, 1]]"),
            path + "[1]: '[1,1]' does not follow the point before it; expected x rising");
  EXPECT_EQ(complaint("[[2]]"), path + "[0]: '[2]' is no point; expected [x, y]");
  EXPECT_EQ(complaint("[]"), path + ": '[]' is empty; expected at least one point");
}

TEST(EngineTimingTest, IsReadAndInherited) {
  const Profile newer = load_profile(repository_catalog(), "megatron@2022", "test");
  EXPECT_TRUE(newer.timing.attention_kernel.empty());
  EXPECT_TRUE(newer.timing.runs_beside(Overlap::tensor_backward));
  EXPECT_FALSE(newer.timing.runs_beside(Overlap::gathers));
  const Profile older = load_profile(repository_catalog(), "megatron@2021", "test");
  EXPECT_FALSE(older.timing.runs_beside(Overlap::tensor_backward));
  EXPECT_EQ(older.timing.host_per_launch, newer.timing.host_per_launch);
  const bool listed = std::ranges::any_of(
      older.facts, [](const Fact& fact) { return fact.key == "timing.update_extra_bytes"; });
  EXPECT_TRUE(listed);
}

}  // namespace
}  // namespace placet
