// Devices of one stage that differ: an axis with shares gives its coordinates parts of different
// size, and a mixed cluster gives them different memory (docs/theory.md §2, Shares).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "derive/derivation.h"
#include "placement/placement.h"

namespace placet {

/// Devices with equal shares along every axis that has shares (layer axes not counted: their shares
/// are what stages hold).
struct ShareClass {
  std::vector<std::int64_t> coordinates;  // of one of its devices, by axis; 0 where shares are even
  std::int64_t devices = 0;               // in all stages
  std::string name;                       // "dp 2/9", "dp 2/9 tp 1/3"

  friend bool operator==(const ShareClass&, const ShareClass&) = default;
};

/// The classes in order of their first device; one without name if no axis has shares, or if there
/// would be more than 256. Case: dp=8[2,1,1,1,1,1,1,1]: "dp 2/9" with 1 device, "dp 1/9" with 7.
std::vector<ShareClass> share_classes(const Placement& placement);

/// Memory of the smallest device of each class, in their order: what each is judged against
/// (`groups_of_class`).
std::vector<Bytes> capacities_of(const Cluster& cluster, const Placement& placement,
                                 const std::vector<MemoryClass>& classes);

}  // namespace placet
