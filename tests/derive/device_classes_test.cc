#include "derive/device_classes.h"

#include <gtest/gtest.h>

#include "derive/derive.h"
#include "derive/small_llama.h"

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
