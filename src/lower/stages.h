// Which units each device of a layer cut hosts, and in which order it works. Inside of lower/.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/job.h"

namespace placet {

struct StagePlan {
  std::int64_t coordinate = 0;           // along the layer axis
  std::vector<std::vector<int>> chunks;  // units by chunk
  std::vector<std::int64_t> virtual_stages;
  std::vector<Work> work;
};

/// The position of the layer axis in the placement; -1: none.
int layer_axis(const Placement& placement);

/// One plan per coordinate of the layer axis; one if there is none. Throws InputError for
/// schedules that have no form here yet.
std::vector<StagePlan> plan_stages(const Job& job, std::int64_t micro_batches);

}  // namespace placet
