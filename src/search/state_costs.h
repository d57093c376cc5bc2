// What the states of one unit take on a device: the other part of a plan that many plans share
// (docs/theory.md §9.2).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "search/plan_space.h"
#include "search/work_costs.h"

namespace placet {

/// Measured rates of messages fall by up to 0.2 % where they should rise with their size.
inline constexpr double kDips = 0.995;

/// Of one unit. Tensors that may be another unit's are left out.
struct UnitStateCost {
  std::int64_t parameters = 0;  // bytes at rest on the device
  std::int64_t optimizer = 0;
  std::int64_t gradients = 0;
  // Bytes of its parameters while they are whole for use: of all that are gathered, of those that
  // stay from forward to backward or longer, and of those that stay over the step.
  std::int64_t gathered = 0, kept = 0, kept_step = 0;
  // Seconds of its update: on the device; on the host, whose arithmetic and NVMe drives work beside
  // each other.
  double update = 0, on_host = 0, on_drives = 0;
  // Seconds of its parameters' and gradients' messages: per micro-batch, per step, after the last
  // backward, after the update. Only of blocks. Of messages in which units travel together, its
  // part of one that carries the whole model.
  double each = 0, once = 0, reduce = 0, after = 0;
  // Bytes of those that each unit sends alone: per micro-batch, per step.
  std::int64_t sent_each = 0, sent_once = 0;
};

/// By kind of unit.
using StateCosts = std::vector<UnitStateCost>;

/// Seconds of the update of so many units of each kind on one device (as derive/update_time.h).
double update_seconds(const StateCosts& costs, const std::vector<std::int32_t>& units);

/// Lowers `out` to costs that are no dearer than `costs`, kind by kind; takes them where it is
/// empty.
void lower_to(const StateCosts& costs, StateCosts& out);

/// Of a plan's states with some of them moved off the device.
struct MovedStates {
  std::int16_t offload = 0;
  StateCosts costs;
};

/// All that may be moved: what fits, and how many ways the engine refuses.
struct MovableStates {
  std::vector<MovedStates> fitting;
  std::int64_t refused = 0;
};

/// Of the states of a plan, whatever its pipeline, recomputation and micro-batch, for each of the
/// space's offloads. Engines may ask whether a step has several micro-batches: `accumulates`.
/// Left out is what `fits` says no to by its bytes: messages, which are dearer to know, are not
/// looked at then.
MovableStates state_costs(const PlanSpace& space, const Plan& plan, bool accumulates,
                          const std::function<bool(const StateCosts&)>& fits, Workbench& bench);

}  // namespace placet
