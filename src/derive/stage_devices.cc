#include "derive/stage_devices.h"

#include <optional>

#include "derive/kernel_time.h"

namespace placet {
namespace {

/// Ranks one after another that are of one stage, and how such runs lie.
struct StageRuns {
  std::int64_t length = 1;  // ranks of a run
  std::int64_t count = 1;   // runs of all stages
};

StageRuns runs_of(const Placement& placement) {
  StageRuns out;
  bool inside = true;  // of all layer axes
  for (std::size_t a = placement.axes.size(); a-- > 0;) {
    const AxisPlacement& axis = placement.axes[a];
    if (axis.how.cut == Cut::layer && axis.degree > 1) inside = false;
    (inside ? out.length : out.count) *= axis.degree;
  }
  return out;
}

/// The stage of the run with this number.
std::int64_t stage_of_run(const Placement& placement, const StageRuns& runs, std::int64_t run) {
  std::int64_t stage = 0;
  std::int64_t stages = 1;
  std::int64_t inside = 1;
  for (std::size_t a = placement.axes.size(); a-- > 0;) {
    const AxisPlacement& axis = placement.axes[a];
    inside *= axis.degree;
    if (inside <= runs.length) continue;
    if (axis.how.cut == Cut::layer) {
      stage += run % axis.degree * stages;
      stages *= axis.degree;
    }
    run /= axis.degree;
  }
  return stage;
}

}  // namespace

std::size_t group_of_stage(const Cluster& cluster, const Placement& placement, int stage) {
  const std::vector<DeviceGroup>& groups = cluster.groups;
  if (groups.size() < 2) return 0;
  const StageRuns runs = runs_of(placement);
  std::optional<std::size_t> slowest;
  for (std::int64_t run = 0; run < runs.count; ++run) {
    if (stage_of_run(placement, runs, run) != stage) continue;
    std::int64_t begin = 0;
    for (std::size_t g = 0; g < groups.size(); begin += groups[g++].count) {
      const bool stands_here =
          run * runs.length < begin + groups[g].count && begin < (run + 1) * runs.length;
      if (stands_here && (!slowest || is_slower(groups[g], groups[*slowest]))) slowest = g;
    }
  }
  return slowest.value_or(position_of_slowest(cluster));
}

}  // namespace placet
