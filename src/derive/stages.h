// Which units each device of a layer cut hosts (docs/theory.md §2, readings).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "profile/job.h"

namespace placet {

/// One device of the pipeline: its chunks in order of its virtual stages, each a list of positions
/// in Model::units.
struct Stage {
  int device = 0;
  std::vector<std::vector<int>> chunks;
  std::vector<std::int64_t> virtual_stages;  // by chunk
  BackwardReach backward;                    // of all stages of the pipeline
  bool hosts_first = false;                  // the first virtual stage (embedding)
  bool hosts_last = false;                   // the last one (head, loss)

  bool runs_backward(std::size_t chunk) const { return backward.runs_in(virtual_stages[chunk]); }

  friend bool operator==(const Stage&, const Stage&) = default;
};

/// Calls visit(u) for every unit that the device hosts, chunk by chunk.
template <class Visit>
void for_each_unit(const Stage& stage, Visit visit) {
  for (const std::vector<int>& chunk : stage.chunks) {
    for (int u : chunk) visit(u);
  }
}

/// Whether some unit that the device hosts fulfils the condition.
template <class Condition>
bool hosts_any(const Stage& stage, Condition condition) {
  return std::ranges::any_of(stage.chunks, [&](const std::vector<int>& chunk) {
    return std::ranges::any_of(chunk, condition);
  });
}

/// Product of the degrees of the layer axes.
std::int64_t pipeline_degree(const Placement& placement);

/// Blocks per virtual stage: the placement's shares, or the profile's rule (even; blocks, embedding
/// and head weighed; by cost). Sums to the model's blocks; where shares do not, they are cut short
/// or the last stage takes the rest, and where there are more stages than blocks some have none (a
/// finding of rule `divisibility` says so). Throws InputError where stages outnumber blocks by over
/// 1024.
std::vector<std::int64_t> blocks_per_stage(const Job& job, std::int64_t virtual_stages);

/// The stages of a job, one per device along its layer axes together (one if there are none).
/// The embedding stands on the first virtual stage; head and prediction modules on the last.
std::vector<Stage> stages_of(const Job& job);

/// Whether the unit at position `unit` of Model::units is the model's last block.
bool is_last_block(const Model& model, int unit);

/// Whether no unit that the device hosts before `unit` is tied to the tensor that `parameter` of
/// `unit` is tied to: several units may use the same remote tensor (head and prediction modules).
bool is_first_use(const Model& model, const Stage& stage, const Parameter& parameter, int unit);

/// Whether the device holds the parameter's storage anyway, as another unit's tensor it is tied to.
bool is_second_use(const Model& model, const Stage& stage, const Parameter& parameter);

}  // namespace placet
