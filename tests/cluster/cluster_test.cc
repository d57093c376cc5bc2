#include "cluster/cluster.h"

#include <gtest/gtest.h>

#include "units/error.h"

namespace placet {
namespace {

// Two levels: 8 devices per host at 450 GB/s, hosts at 50 GB/s.
DeviceGroup group_of(std::int64_t count, const char* inner, double inner_rate, const char* outer,
                     double outer_rate) {
  return {
      .device = {.name = "device", .memory = gibibytes(80), .memory_source = "test"},
      .count = count,
      .per_host = 8,
      .host_memory = gibibytes(1024),
      .host_link = gigabytes_per_second(64),
      .levels = {{.link = inner, .devices = 8, .bandwidth = gigabytes_per_second(inner_rate)},
                 {.link = outer, .devices = count, .bandwidth = gigabytes_per_second(outer_rate)}}};
}

Cluster one_group(std::int64_t count) {
  return {.name = "test", .groups = {group_of(count, "inside", 450, "between", 50)}};
}

Cluster two_groups() {
  Cluster cluster{.name = "mixed",
                  .groups = {group_of(64, "old inside", 300, "old between", 25),
                             group_of(64, "inside", 450, "between", 50)},
                  .between_groups = {.link = "joint", .devices = 128}};
  cluster.groups[0].device.memory = gibibytes(40);
  return cluster;
}

std::string link(const Cluster& cluster, std::int64_t count, std::int64_t stride) {
  return level_of(cluster, count, stride).link;
}

TEST(ClusterTest, DevicesAndSmallestMemoryOverGroups) {
  EXPECT_EQ(devices_of(one_group(64)), 64);
  EXPECT_EQ(devices_of(two_groups()), 128);
  EXPECT_EQ(smallest_memory(two_groups()), gibibytes(40));
}

TEST(LevelTest, GroupsThatTileAHostStayInside) {
  EXPECT_EQ(link(one_group(64), 8, 1), "inside");
  EXPECT_EQ(link(one_group(64), 4, 1), "inside");
  EXPECT_EQ(link(one_group(64), 2, 4), "inside");
  EXPECT_EQ(link(one_group(64), 4, 2), "inside");
}

TEST(LevelTest, GroupsThatReachFurtherDoNot) {
  EXPECT_EQ(link(one_group(64), 16, 1), "between");
  EXPECT_EQ(link(one_group(64), 2, 8), "between");
  EXPECT_EQ(link(one_group(64), 8, 8), "between");
}

// Ranks 6, 7, 8 are the third group of three: 6 and 7 on the first host, 8 on the second.
TEST(LevelTest, AGroupOnTheBorderDecidesForAll) {
  EXPECT_EQ(link(one_group(48), 3, 1), "between");
  EXPECT_EQ(link(one_group(48), 6, 1), "between");
  EXPECT_EQ(link(one_group(6), 3, 1), "inside") << "six devices are one host";
}

// Blocks of 12 ranks, groups {0,6} ... {5,11}: 0 and 6 share a host, 2 and 8 do not.
TEST(LevelTest, StrideCountsToo) { EXPECT_EQ(link(one_group(48), 2, 6), "between"); }

TEST(LevelTest, OneRankNeedsNoLink) { EXPECT_EQ(link(one_group(64), 1, 64), "inside"); }

// Axes of degree 2 with strides 4 and 1 (one of degree 2 between them left out): a block of 8, its
// groups span 4 + 1 + 1 ranks.
TEST(LevelTest, SeveralAxesAreABlock) {
  EXPECT_EQ(level_of(one_group(64), RankBlock{.span = 6, .size = 8}).link, "inside");
  EXPECT_EQ(level_of(one_group(64), RankBlock{.span = 9, .size = 16}).link, "between");
}

TEST(LevelTest, TheSlowestGroupOfDevicesDecides) {
  EXPECT_EQ(link(two_groups(), 8, 1), "old inside");
  EXPECT_EQ(link(two_groups(), 8, 8), "old between");
}

TEST(LevelTest, ABlockInTwoGroupsOfDevicesGoesBetweenThem) {
  EXPECT_EQ(link(two_groups(), 2, 64), "joint");
  EXPECT_EQ(link(two_groups(), 128, 1), "joint");
  EXPECT_EQ(link(two_groups(), 64, 1), "old between");
}

// A loop over random shapes against the definition: every group inside one domain.
TEST(LevelTest, EqualsLookingAtEveryGroup) {
  for (std::int64_t count = 2; count <= 8; ++count) {
    for (std::int64_t stride = 1; stride <= 10; ++stride) {
      const std::int64_t block = count * stride;
      const std::int64_t total = 8 * block;  // whole blocks and whole hosts
      bool inside = true;
      for (std::int64_t start = 0; start < total; start += block) {
        for (std::int64_t offset = 0; offset < stride; ++offset) {
          const std::int64_t first = start + offset;
          const std::int64_t last = first + (count - 1) * stride;
          inside = inside && first / 8 == last / 8;
        }
      }
      EXPECT_EQ(link(one_group(total), count, stride), inside ? "inside" : "between")
          << count << " ranks " << stride << " apart";
    }
  }
}

TEST(LevelTest, OurOwnMistakesAreCaught) {
  EXPECT_THROW(level_of(Cluster{}, 2, 1), InternalError);
  EXPECT_THROW(level_of(one_group(8), 0, 1), InternalError);
}

}  // namespace
}  // namespace placet
