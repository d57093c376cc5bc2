// What the job runs on: devices with their memory, and the links between them, level by level
// (docs/theory.md §7). Figures come from data files, each with source and date.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/rates.h"
#include "units/quantity.h"

namespace placet {

/// An accelerator. Peaks are the maker's; what is achievable is the time model's business.
struct Device {
  std::string name;  // "h100-sxm"
  Bytes memory;      // what a program can address, as the driver reports it
  std::string memory_source;
  FlopsPerSecond peak_bf16{};  // dense; 0 if unknown
  BytesPerSecond memory_bandwidth{};
  bool reads_both_orders = false;  // products in 8 bits take operands in the order of either dim
  DeviceRates rates;               // what it reaches
  double price_per_hour = 0;       // US dollars; 0: not known

  friend bool operator==(const Device&, const Device&) = default;
};

/// One level of the topology, innermost first: `size` devices (counted in all) are joined by it.
struct Level {
  std::string link;                   // "NVLink 4"
  std::int64_t devices = 1;           // devices inside one domain of this level
  BytesPerSecond bandwidth{};         // per device and direction
  Seconds latency{};                  // of one message between neighbours
  double efficiency = 1;              // of the bandwidth, that long collectives reach
  double exchange_efficiency = 0;     // the same of all-to-alls; 0: as any other
  BytesPerSecond bandwidth_of_all{};  // of groups that together take up all of its devices, where
                                      // that was measured; 0: like any other group
  std::vector<BusCurve> all_reduce;   // measured, by group; groups rising

  friend bool operator==(const Level&, const Level&) = default;
};

/// A run of equal devices.
struct DeviceGroup {
  Device device;
  std::int64_t count = 0;
  std::int64_t per_host = 8;
  Bytes host_memory{};         // of one host
  BytesPerSecond host_link{};  // device to host memory, one direction
  BytesPerSecond nvme_link{};  // a device's share of its host's NVMe drives, one direction
  /// Of the host, per collective and further member of its group: one in the same domain of the
  /// innermost level, and any other.
  Seconds host_per_neighbour{};
  Seconds host_per_member{};
  double host_pace = 1;  // times as long as an engine's profile says the hosts take for all they do
  bool host_runs_ahead = false;  // they launch kernels faster than the devices run them
  std::string host;              // name of the hosts, where a file has them
  std::vector<Level> levels;     // innermost first; the last one spans the group

  friend bool operator==(const DeviceGroup&, const DeviceGroup&) = default;
};

/// Ranks are laid over the groups in order. Most clusters are one group.
struct Cluster {
  std::string name;  // as asked for: "h100-sxm:8"
  std::vector<DeviceGroup> groups;
  Level between_groups;  // the link that joins groups, if there are several

  friend bool operator==(const Cluster&, const Cluster&) = default;
};

/// Some of a cluster's groups, as rising positions in Cluster::groups: those of devices that work
/// side by side and wait for one another.
using GroupSet = std::vector<std::size_t>;
GroupSet all_groups(const Cluster& cluster);

/// The most of `value(group)` over the groups: what devices that wait for one another take, where
/// it is a time. REQUIRES: there is one.
template <class Value>
auto most_of(const Cluster& cluster, const GroupSet& groups, Value value) {
  auto most = value(cluster.groups[groups.front()]);
  for (const std::size_t g : groups) most = std::max(most, value(cluster.groups[g]));
  return most;
}

/// What a device exchanges with NVMe: through host memory, no faster than either; as fast as host
/// memory where nothing is known of the drives.
BytesPerSecond nvme_rate(const DeviceGroup& group);

/// Devices in all.
std::int64_t devices_of(const Cluster& cluster);

/// Memory of the smallest device: what every rank of an even job can count on.
Bytes smallest_memory(const Cluster& cluster);

/// Where the groups of some mesh axes stand: blocks of `size` ranks tile all ranks from rank 0, and
/// each group of a block lies within `span` consecutive ranks of it. For axes of a mesh, size is
/// the outermost one's degree times its stride, and span - 1 the sum of (degree - 1) x stride.
struct RankBlock {
  std::int64_t span = 1;
  std::int64_t size = 1;
};

/// The innermost level that joins every such group: no group lies in two of the level's domains.
/// Where device groups differ, the slowest of their levels; where a block lies in two of them,
/// `between_groups`.
const Level& level_of(const Cluster& cluster, const RankBlock& block);

/// The same where all of it stands on these groups of devices. REQUIRES: there is one.
const Level& level_of(const Cluster& cluster, const GroupSet& groups, const RankBlock& block);

/// The same for one axis: groups of `count` ranks which stand `stride` apart.
/// Cases: 8 devices per host: count 8, stride 1 is inside the host; count 2, stride 8 is not; nor
/// is count 3, stride 1, for the ranks 6, 7, 8 are such a group.
const Level& level_of(const Cluster& cluster, std::int64_t count, std::int64_t stride);

}  // namespace placet
