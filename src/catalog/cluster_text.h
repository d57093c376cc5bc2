// A cluster as text: a few words where they say all of it, else a file of its own.
#pragma once

#include <string>

#include "catalog/catalog.h"
#include "cluster/cluster.h"

namespace placet {

/// The cluster file of one group of devices, which reads as that group (docs/formats.md,
/// section 5). Bandwidths are printed so that they read back to within a billionth.
std::string print_group(const Catalog& catalog, const DeviceGroup& group);

}  // namespace placet
