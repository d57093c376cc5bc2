#include "cluster/cluster.h"

#include <algorithm>
#include <numeric>

#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

// Whether all groups of a size lie inside one domain of `domain` ranks each. Blocks tile the ranks
// from 0; the groups of a block lie side by side, shifted by one rank each, and fill it. Where
// blocks do not tile the domain, the one that holds the domain's border has a group on both sides
// of it.
bool joined_by(std::int64_t domain, std::int64_t total, const RankBlock& block) {
  if (block.span <= 1 || total <= domain) return true;
  return block.span <= domain && domain % block.size == 0;
}

// The position of the innermost level of `group` that joins them; the last one if none does.
std::size_t level_inside(const DeviceGroup& group, const RankBlock& block) {
  ensure(!group.levels.empty(), "a group of devices has at least one level");
  for (std::size_t i = 0; i + 1 < group.levels.size(); ++i) {
    if (joined_by(group.levels[i].devices, group.count, block)) return i;
  }
  return group.levels.size() - 1;
}

// Whether some block lies in two groups of devices.
bool crosses_groups(const Cluster& cluster, const RankBlock& block) {
  if (block.span <= 1) return false;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i + 1 < cluster.groups.size(); ++i) {
    begin = checked_add(begin, cluster.groups[i].count, "devices");
    if (begin % block.size != 0) return true;
  }
  return false;
}

}  // namespace

GroupSet all_groups(const Cluster& cluster) {
  GroupSet out(cluster.groups.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  return out;
}

BytesPerSecond nvme_rate(const DeviceGroup& group) {
  if (group.nvme_link == BytesPerSecond()) return group.host_link;
  return std::min(group.host_link, group.nvme_link);
}

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
  for (const DeviceGroup& group : cluster.groups)
    smallest = std::min(smallest, group.device.memory);
  return smallest;
}

const Level& level_of(const Cluster& cluster, const RankBlock& block) {
  return level_of(cluster, all_groups(cluster), block);
}

const Level& level_of(const Cluster& cluster, const GroupSet& groups, const RankBlock& block) {
  ensure(!groups.empty(), "a cluster has at least one group of devices");
  ensure(1 <= block.span && block.span <= block.size, "a block holds its groups");
  if (groups.size() > 1 && crosses_groups(cluster, block)) return cluster.between_groups;
  const Level* slowest = nullptr;
  for (const std::size_t g : groups) {
    const DeviceGroup& group = cluster.groups[g];
    const Level& level = group.levels[level_inside(group, block)];
    if (slowest == nullptr || level.bandwidth < slowest->bandwidth) slowest = &level;
  }
  return *slowest;
}

const Level& level_of(const Cluster& cluster, std::int64_t count, std::int64_t stride) {
  ensure(count >= 1 && stride >= 1, "ranks are counted from 1 and stand at least 1 apart");
  const std::int64_t size = checked_multiply(count, stride, "ranks");
  return level_of(cluster, {.span = size - stride + 1, .size = size});
}

}  // namespace placet
