#include "cluster/cluster.h"

#include <algorithm>

#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

// Whether every block of `count` ranks `stride` apart lies inside one domain of `domain` ranks, of
// `total` ranks in all. Blocks of count x stride ranks tile the ranks from 0; inside a block there
// are `stride` groups, one per offset. Where blocks do not tile the domain, the block that holds the
// domain's border always has a group on both sides of it: the one at offset 0 if the border lies
// before that group's last rank, else the one at offset stride - 1.
bool joined_by(std::int64_t domain, std::int64_t total, std::int64_t count, std::int64_t stride) {
  if (count <= 1 || total <= domain) return true;
  const std::int64_t block = checked_multiply(count, stride, "ranks");
  if (block - stride + 1 > domain) return false;
  return domain % block == 0;
}

// The position of the innermost level of `group` that joins such blocks; the last one if none does.
std::size_t level_inside(const DeviceGroup& group, std::int64_t count, std::int64_t stride) {
  ensure(!group.levels.empty(), "a group of devices has at least one level");
  for (std::size_t i = 0; i + 1 < group.levels.size(); ++i) {
    if (joined_by(group.levels[i].devices, group.count, count, stride)) return i;
  }
  return group.levels.size() - 1;
}

// Whether some such block lies in two groups of devices.
bool crosses_groups(const Cluster& cluster, std::int64_t count, std::int64_t stride) {
  if (count <= 1) return false;
  const std::int64_t block = checked_multiply(count, stride, "ranks");
  std::int64_t begin = 0;
  for (std::size_t i = 0; i + 1 < cluster.groups.size(); ++i) {
    begin = checked_add(begin, cluster.groups[i].count, "devices");
    if (begin % block != 0) return true;
  }
  return false;
}

}  // namespace

std::int64_t devices_of(const Cluster& cluster) {
  std::int64_t devices = 0;
  for (const DeviceGroup& group : cluster.groups) {
    devices = checked_add(devices, group.count, "devices");
  }
  return devices;
}

Bytes smallest_memory(const Cluster& cluster) {
  ensure(!cluster.groups.empty(), "a cluster has at least one group of devices");
  Bytes smallest = cluster.groups.front().device.memory;
  for (const DeviceGroup& group : cluster.groups) smallest = std::min(smallest, group.device.memory);
  return smallest;
}

const Level& level_of(const Cluster& cluster, std::int64_t count, std::int64_t stride) {
  ensure(!cluster.groups.empty(), "a cluster has at least one group of devices");
  ensure(count >= 1 && stride >= 1, "ranks are counted from 1 and stand at least 1 apart");
  if (crosses_groups(cluster, count, stride)) return cluster.between_groups;
  const Level* slowest = nullptr;
  for (const DeviceGroup& group : cluster.groups) {
    const Level& level = group.levels[level_inside(group, count, stride)];
    if (slowest == nullptr || level.bandwidth < slowest->bandwidth) slowest = &level;
  }
  return *slowest;
}

std::vector<std::string> link_names(const Cluster& cluster) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const DeviceGroup& group : cluster.groups) {
    for (const Level& level : group.levels) add(level.link);
  }
  if (cluster.groups.size() > 1) add(cluster.between_groups.link);
  return names;
}

int link_position(const Cluster& cluster, const Level& level) {
  const std::vector<std::string> names = link_names(cluster);
  const auto it = std::find(names.begin(), names.end(), level.link);
  ensure(it != names.end(), "the level is one of the cluster's");
  return static_cast<int>(it - names.begin());
}

}  // namespace placet
