// The time of a step as a row gives it, and as it is derived on the cluster that the row means.
#pragma once

#include <optional>

#include "catalog/catalog.h"
#include "derive/time.h"
#include "validate/run_facts.h"
#include "validate/run_jobs.h"

namespace placet {

/// Seconds of a step: as printed; else from tokens or samples per second; else from FLOP/s per
/// device, by the usual count of model FLOPs (model/listing.h) or, where the row says that
/// recomputation is counted, by that of arXiv 2104.04473, equation 3. None where the row has no
/// such figure.
std::optional<double> measured_step(RowReader& reader, const RunFacts& facts, const Model& model);

/// The row's cluster: its device's usual hosts and network unless the row or its source says
/// otherwise. Measured bandwidths stand for those of the links; the one across hosts is what a
/// collective over all devices of a host reaches together.
/// Throws InputError that speaks of `where`.
Cluster cluster_of(const Catalog& catalog, const RunFacts& facts, const std::string& device,
                   const std::string& where);

}  // namespace placet
