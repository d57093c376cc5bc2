// Which devices of a mixed cluster the stages of a pipeline stand on (docs/theory.md §7.4).
#pragma once

#include <cstddef>

#include "cluster/cluster.h"
#include "placement/placement.h"

namespace placet {

/// The slowest group of devices that stage `stage` has ranks in, as a position in Cluster::groups:
/// the one that the others of the stage wait for. Ranks lie over the groups in order; a stage
/// beyond them counts as of the slowest. REQUIRES: the cluster has devices.
/// Case: 8 A100 and 8 H100: of pp=2 dp=8 stage 0 stands on A100 and stage 1 on H100; of dp=8 pp=2
/// both stand on both, and the A100 count.
std::size_t group_of_stage(const Cluster& cluster, const Placement& placement, int stage);

}  // namespace placet
