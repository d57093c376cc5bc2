// Networks among hosts as people write them: in `--cluster` behind '@', in a cluster file, in a
// table of runs (docs/formats.md, section 5).
//
//   roce-400            a link of data/hardware/links
//   400gbit             400 Gb/s per device and direction
//   3200gbit-per-host   3200 Gb/s that the devices of a host share
//   roce-400/3          the same, of which the uplinks of leaf switches carry a third ("3:1")
#pragma once

#include <cstdint>
#include <string>

#include "catalog/catalog.h"
#include "catalog/meant.h"
#include "cluster/cluster.h"

namespace placet {

/// The canonical spelling of a network: "400 GbE" is roce-400, "EFA" efa-3200, "2 Tb/s per node"
/// 2000gbit-per-host, "50 GB/s" 400gbit, "100GbE 3:1" roce-100/3. Second names of links are those
/// of data/words/links.json. A word that stands for nothing known is left as it is.
Meant meant_network(const Catalog& catalog, const std::string& text);

/// Whether a canonical text is a link of the catalogue or a rate.
bool is_network(const Catalog& catalog, const std::string& text);

/// The level that a canonical text spells, for hosts of `per_host` devices. A rate has the latency
/// and the efficiency of roce-400. Oversubscription divides the bandwidth: without leaf switches
/// that a cluster file tells of, all that leaves a host is charged for it.
/// Throws InputError that speaks of `where`.
Level read_network(const Catalog& catalog, const std::string& text, std::int64_t per_host,
                   const std::string& where);

}  // namespace placet
