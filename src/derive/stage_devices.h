// Which devices of a mixed cluster the stages of a pipeline stand on (docs/theory.md §7.4).
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/cluster.h"
#include "placement/placement.h"

namespace placet {

/// Shares that fit their axis: another number of them is a finding of the rules.
bool has_fitting_shares(const AxisPlacement& axis);

/// The groups of devices that stage `stage` has ranks in: it goes at the pace of the slowest of
/// them. Ranks lie over the groups in order; a stage beyond them counts as of all. In O(axes) for
/// each group, however many ranks. REQUIRES: the cluster has devices.
/// Case: 8 A100 and 8 H100: of pp=2 dp=8 stage 0 stands on A100 and stage 1 on H100; of dp=8 pp=2
/// each stands on both.
GroupSet groups_of_stage(const Cluster& cluster, const Placement& placement, std::int64_t stage);

/// The same of those of its devices whose share along every axis that has some is that of the
/// device with these coordinates (ShareClass::coordinates).
GroupSet groups_of_class(const Cluster& cluster, const Placement& placement, std::int64_t stage,
                         const std::vector<std::int64_t>& coordinates);

}  // namespace placet
