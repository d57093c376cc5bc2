#include "derive/device_classes.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "derive/derive.h"
#include "derive/divider.h"
#include "derive/layout.h"
#include "derive/stage_devices.h"
#include "derive/stages.h"
#include "derive/traffic.h"

namespace placet {
namespace {

DeviceGroup group(std::int64_t count, Bytes memory) {
  DeviceGroup out;
  out.device.memory = memory;
  out.count = count;
  out.levels = {{.link = "wire", .devices = count}};
  return out;
}

TEST(DeviceClasses, OneForEachSizeOfShare) {
  Placement placement;
  placement.axes = {axis("dp", 8, Cut::batch), axis("tp", 2, Cut::tensor, kTensorWhole)};
  placement.axes[0].shares = {2, 1, 1, 1, 1, 1, 1, 1};
  const std::vector<ShareClass> expected = {
      {.coordinates = {0, 0}, .devices = 2, .name = "dp 2/9"},
      {.coordinates = {1, 0}, .devices = 14, .name = "dp 1/9"}};
  EXPECT_EQ(share_classes(placement), expected);
  placement.axes[0].shares.clear();
  EXPECT_EQ(share_classes(placement).size(), 1U);
}

// Parameters rest in proportion to the shares: 2/3 and 1/3 of the whole, which add up to it.
TEST(DeviceClasses, HoldTheirOwnPart) {
  const Model model = bare_model(3'000'000, 1);
  std::vector<AxisPlacement> axes = {axis("dp", 2, Cut::batch, kAllSharded)};
  axes[0].shares = {2, 1};
  const Derivation uneven = derive(plain_job(model, axes, 1, 3));
  ASSERT_EQ(uneven.memory.size(), 2U);
  EXPECT_EQ(class_name(plain_job(model, axes, 1, 3), uneven.memory[0]), "devices of dp 2/3");
  EXPECT_EQ(uneven.memory[0].at_rest[0], bytes(4'000'000));
  EXPECT_EQ(uneven.memory[1].at_rest[0], bytes(2'000'000));
  EXPECT_EQ(uneven.memory[0].devices + uneven.memory[1].devices, 2);
}

Cluster two_kinds(std::int64_t first, std::int64_t second) {
  Cluster out;
  out.groups = {group(first, bytes(1)), group(second, bytes(1))};
  return out;
}

std::vector<GroupSet> groups_of_stages(const Cluster& cluster, std::vector<AxisPlacement> axes) {
  Placement placement;
  placement.axes = std::move(axes);
  std::vector<GroupSet> out;
  for (int s = 0; s < pipeline_degree(placement); ++s) {
    out.push_back(groups_of_stage(cluster, placement, s));
  }
  return out;
}

TEST(StageDevices, AreThoseOfItsRanks) {
  const AxisPlacement two = axis("a", 2, Cut::layer);
  const AxisPlacement four = axis("b", 4, Cut::layer);
  const AxisPlacement data = axis("dp", 8, Cut::batch);
  using Groups = std::vector<GroupSet>;
  EXPECT_EQ(groups_of_stages(two_kinds(8, 8), {two, data}), (Groups{{0}, {1}}));
  EXPECT_EQ(groups_of_stages(two_kinds(8, 8), {data, two}), (Groups{{0, 1}, {0, 1}}));
  EXPECT_EQ(groups_of_stages(two_kinds(12, 4), {two, data}), (Groups{{0}, {0, 1}}));
  EXPECT_EQ(groups_of_stages(two_kinds(12, 4), {four, axis("dp", 4, Cut::batch)}),
            (Groups{{0}, {0}, {0}, {1}}));
  // The last stage of each data coordinate but one is of the first kind.
  EXPECT_EQ(groups_of_stages(two_kinds(15, 1), {axis("dp", 4, Cut::batch), four}),
            (Groups{{0}, {0}, {0}, {0, 1}}));
  // Two layer axes with another between them: stages 0 and 1 are ranks 0, 2 and 1, 3.
  EXPECT_EQ(groups_of_stages(two_kinds(4, 4), {two, axis("dp", 2, Cut::batch), two}),
            (Groups{{0}, {0}, {1}, {1}}));
  // More ranks than devices: stage 1 stands beyond them, on any.
  EXPECT_EQ(groups_of_stages(two_kinds(1, 1), {two, axis("dp", 2, Cut::batch)}),
            (Groups{{0, 1}, {0, 1}}));
}

/// The groups of a stage, rank by rank.
GroupSet groups_by_rank(const Cluster& cluster, const Placement& placement, std::int64_t stage) {
  std::set<std::size_t> out;
  for (std::int64_t rank = 0; rank < devices_of(placement); ++rank) {
    std::int64_t own = 0;
    std::int64_t inside = devices_of(placement);
    for (const AxisPlacement& axis : placement.axes) {
      inside /= axis.degree;
      if (axis.how.cut == Cut::layer) own = own * axis.degree + rank / inside % axis.degree;
    }
    std::size_t g = 0;
    for (std::int64_t end = cluster.groups[0].count; end <= rank;) end += cluster.groups[++g].count;
    if (own == stage) out.insert(g);
  }
  return {out.begin(), out.end()};
}

TEST(StageDevices, AreThoseThatTheRanksAreCountedOn) {
  std::mt19937 draw(5);
  const auto any = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(draw);
  };
  for (int i = 0; i < 500; ++i) {
    Placement placement;
    for (std::int64_t a = any(1, 5); a > 0; --a) {
      placement.axes.push_back(axis("x", any(1, 4), any(0, 1) == 0 ? Cut::layer : Cut::batch));
    }
    Cluster cluster;
    for (std::int64_t left = devices_of(placement); left > 0;) {
      cluster.groups.push_back(group(any(1, left), bytes(1)));
      left -= cluster.groups.back().count;
    }
    for (std::int64_t s = 0; s < pipeline_degree(placement); ++s) {
      ASSERT_EQ(groups_of_stage(cluster, placement, s), groups_by_rank(cluster, placement, s)) << i;
    }
  }
}

// 2^55 ranks: nothing is done rank by rank.
TEST(StageDevices, AreFoundOnAnyMesh) {
  const std::int64_t half = std::int64_t{1} << 54;
  const AxisPlacement data = axis("dp", half / 2, Cut::batch);
  const AxisPlacement four = axis("pp", 4, Cut::layer);
  EXPECT_EQ(groups_of_stages(two_kinds(half, half), {four, data}),
            (std::vector<GroupSet>{{0}, {0}, {1}, {1}}));
  EXPECT_EQ(groups_of_stages(two_kinds(half, half), {data, four}),
            std::vector<GroupSet>(4, GroupSet{0, 1}));
  std::vector<MemoryClass> classes(2);
  classes[1].stage = 3;
  Cluster cluster = two_kinds(half, half);
  cluster.groups[0].device.memory = bytes(2);
  const Placement placement{.axes = {four, data}};
  EXPECT_EQ(capacities_of(cluster, placement, classes), (std::vector<Bytes>{bytes(2), bytes(1)}));
}

std::int64_t part(const Placement& placement, std::int64_t total, std::int64_t dp,
                  std::int64_t cp) {
  const Coordinates coordinates = std::vector<std::int64_t>{dp, cp};
  return Divider(placement, coordinates).share(total, axis_bit(0) | axis_bit(1));
}

// 10 over shares 3,2,2: 4.3, 2.9 and 2.9 rounded down leave two: one each to the first two.
TEST(DeviceClasses, EqualSharesDifferByOnePieceAtMost) {
  Placement placement;
  placement.axes = {axis("dp", 3, Cut::batch), axis("cp", 1, Cut::sequence)};
  placement.axes[0].shares = {3, 2, 2};
  EXPECT_EQ(part(placement, 10, 0, 0), 5);
  EXPECT_EQ(part(placement, 10, 1, 0), 3);
  EXPECT_EQ(part(placement, 10, 2, 0), 2);
  EXPECT_EQ(largest_part(placement, 10, axis_bit(0)), 5);
  EXPECT_EQ(smallest_part(placement, 10, axis_bit(0)), 2);
  // Fifths of 7, and 2/3 and 1/3 of each, in one go: the weights are 4, 4, 2 and 2, 2, 1 of 15.
  placement.axes[0].shares = {2, 2, 1};
  placement.axes[1] = axis("cp", 2, Cut::sequence);
  placement.axes[1].shares = {2, 1};
  std::vector<std::int64_t> parts;
  for (std::int64_t i = 0; i < 6; ++i) parts.push_back(part(placement, 7, i / 2, i % 2));
  // 28/15 = 1 twice, 14/15 = 0 three times, 7/15 = 0: five are left, the heaviest first.
  EXPECT_EQ(parts, (std::vector<std::int64_t>{2, 1, 2, 1, 1, 0}));
}

// Of all coordinates with equal shares the first has the largest part of any length, so that its
// device is the fullest of its class; and the parts add up.
TEST(DeviceClasses, TheFirstOfAClassIsItsFullest) {
  Placement placement;
  placement.axes = {axis("dp", 5, Cut::batch), axis("cp", 4, Cut::sequence)};
  placement.axes[0].shares = {3, 7, 3, 7, 3};
  for (const std::vector<std::int64_t>& inner :
       {std::vector<std::int64_t>{}, std::vector<std::int64_t>{2, 5, 2, 1}}) {
    placement.axes[1].shares = inner;
    for (std::int64_t total = 0; total < 500; ++total) {
      std::int64_t sum = 0;
      for (std::int64_t dp = 0; dp < 5; ++dp) {
        for (std::int64_t cp = 0; cp < 4; ++cp) {
          const std::int64_t own = part(placement, total, dp, cp);
          sum += own;
          const std::int64_t first_dp = dp % 2;
          const std::int64_t first_cp = inner.empty() || cp == 2 ? 0 : cp;
          EXPECT_LE(own, part(placement, total, first_dp, first_cp)) << total;
        }
      }
      EXPECT_EQ(sum, total);
    }
  }
}

// 10 over an even axis and over shares 2,1. All at once: 6.7 and 3.3, so 7 and 3; of each the
// larger half, 4 and 2. The even axis first, as its gradients are scattered in each micro-batch: of
// 5, 3.3 and 1.7, so 4 and 1, with 12 bytes of optimizer state each.
TEST(DeviceClasses, RowsAreDividedInTheOrderOfTheirMessages) {
  const auto state_at_rest = [](const char* placement) {
    std::vector<Bytes> bytes;
    for (const MemoryClass& memory :
         derive(written_job(bare_model(10, 1), placement, 1, 6)).memory) {
      bytes.push_back(memory.at_rest[1]);
    }
    return bytes;
  };
  EXPECT_EQ(state_at_rest("a=2:zero1 b=2[2,1]:zero1"), (std::vector<Bytes>{bytes(48), bytes(24)}));
  EXPECT_EQ(state_at_rest("a=2:zero2 b=2[2,1]:zero1"), (std::vector<Bytes>{bytes(48), bytes(12)}));
}

// The larger share lies on the larger device: 60 of 100 and 30 of 40 bytes fit, although 60 is
// above the smallest device's memory.
TEST(DeviceClasses, AreJudgedByTheirOwnDevices) {
  Placement placement;
  placement.axes = {axis("dp", 2, Cut::batch)};
  placement.axes[0].shares = {2, 1};
  Cluster cluster;
  cluster.groups = {group(1, bytes(100)), group(1, bytes(40))};
  std::vector<MemoryClass> classes(2);
  classes[0].coordinates = {0};
  classes[1].coordinates = {1};
  EXPECT_EQ(capacities_of(cluster, placement, classes),
            (std::vector<Bytes>{bytes(100), bytes(40)}));
  // Of equal devices the smallest memory counts, and so it does for a class on both kinds.
  placement.axes[0].shares.clear();
  classes.resize(1);
  classes[0].coordinates.clear();
  EXPECT_EQ(capacities_of(cluster, placement, classes), (std::vector<Bytes>{bytes(40)}));
}

// Stages on different devices: the second lies on the smaller one.
TEST(DeviceClasses, StagesLieOnTheirOwnDevices) {
  Placement placement;
  placement.axes = {axis("pp", 2, Cut::layer, kStages), axis("dp", 2, Cut::batch)};
  Cluster cluster;
  cluster.groups = {group(2, bytes(100)), group(2, bytes(40))};
  std::vector<MemoryClass> classes(2);
  classes[1].stage = 1;
  EXPECT_EQ(capacities_of(cluster, placement, classes),
            (std::vector<Bytes>{bytes(100), bytes(40)}));
}

}  // namespace
}  // namespace placet
