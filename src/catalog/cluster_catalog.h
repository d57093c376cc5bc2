// Devices, links, hosts and clusters by name: data/hardware and data/clusters (docs/formats.md).
// Every figure there has a value, a kind (peak, datasheet, measured or recalled), a source, a date.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "cluster/cluster.h"
#include "profile/profile.h"

namespace placet {

/// A device with everything its file says; for listings.
struct DeviceSheet {
  Device device;
  std::string title;
  double nominal_memory_gb = 0;
  std::string memory_kind;  // "measured"
  FlopsPerSecond peak_fp16{};
  FlopsPerSecond peak_fp8{};
  std::string host;     // its usual host, a name in data/hardware/hosts
  std::string network;  // its usual link among hosts, a name in data/hardware/links
  std::string notes;
  std::vector<Fact> facts;  // figures with their sources

  friend bool operator==(const DeviceSheet&, const DeviceSheet&) = default;
};

/// The device named `name`. Throws InputError that speaks of `where` or of the file and key path.
DeviceSheet load_device(const Catalog& catalog, const std::string& reference,
                        const std::string& where);

/// `count` devices of one kind on their usual hosts and network. Levels: the host's links, then the
/// network if the devices are more than the widest link joins.
DeviceGroup load_group(const Catalog& catalog, const std::string& device, std::int64_t count,
                       const std::string& where);

/// The cluster that `text` spells:
///   h100-sxm:8                                 8 nodes of the device's usual host
///   64xh100-sxm                                64 devices
///   512xa100-80gb-sxm,512xh100-sxm             mixed, ranks in this order
///   dgx-h100:8, 64xdgx-h100                    a cluster of data/clusters, sized alike
///   my.toml, 128xmy.json                       a file of the same form
///   h100-sxm:8@roce-400/3                      on another network (catalog/network_words.h)
/// A bare name takes `devices_needed`, what the placement asks for, or one node without it.
/// Throws InputError that speaks of `where`, or of file and key path.
Cluster load_cluster(const Catalog& catalog, const std::string& text,
                     std::optional<std::int64_t> devices_needed, const std::string& where);

/// One line of `placet clusters`.
struct ClusterSheet {
  std::string name;
  std::string title;
  std::string source;
  Cluster node;  // one node of it

  friend bool operator==(const ClusterSheet&, const ClusterSheet&) = default;
};
ClusterSheet load_cluster_sheet(const Catalog& catalog, const std::string& name);

}  // namespace placet
