// Readers of the parts of a cluster. Inside of catalog/cluster_catalog.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/reader.h"
#include "cluster/cluster.h"
#include "profile/profile.h"

namespace placet {

// Bounds beyond which a figure is a slip of the pen.
inline constexpr std::int64_t kMostDevices = 100'000'000;
inline constexpr Range kTeraflops{0.1, 1'000'000};

/// The value of a figure {value, kind, source, date}; notes it in `facts` under its key path.
double read_figure(const Reader& reader, Range range, std::vector<Fact>& facts);

/// A host by name: devices per host, its memory, its link to the device, the links inside.
struct Host {
  std::string name;
  std::int64_t devices = 8;
  Bytes memory{};
  BytesPerSecond link{};
  BytesPerSecond nvme{};  // of one device
  std::vector<Level> levels;
};
Host load_host(const Catalog& catalog, const std::string& reference, const std::string& where);

/// A link by name, as a level that joins `devices`.
Level load_link(const Catalog& catalog, const std::string& reference, std::int64_t devices,
                const std::string& where);

/// `count` devices on `host`; `network` joins what the host's links do not.
DeviceGroup assemble_group(const Device& device, const Host& host, Level network,
                           std::int64_t count);

/// Checks schema, name and title of a catalogue file.
void check_sheet(const Reader& reader, const std::string& schema, const std::string& name);

}  // namespace placet
