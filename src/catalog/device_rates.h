// Readers of what devices and links reach: the keys "compute" and "attention" of a device, and
// "all_reduce" of a link (docs/formats.md). Inside of catalog/cluster_catalog.
#pragma once

#include <vector>

#include "catalog/cluster_parts.h"
#include "catalog/reader.h"
#include "cluster/cluster.h"

namespace placet {

/// Fills device.rates from its file. What the file does not say is taken from peaks and bandwidth
/// by the shares that devices with figures reach (docs/theory.md §7.2), and noted as a fact of its
/// own, so that a list of facts shows what is known and what is supposed.
void read_rates(const Reader& device_file, Device& device, std::vector<Fact>& facts);

/// Measured all-reduces of a link, if its file has any.
std::vector<BusCurve> read_bus_curves(const Reader& link_file, std::vector<Fact>& facts);

}  // namespace placet
