// Which units the devices of a pipeline host, as counts by kind: what bounds are summed over
// (docs/theory.md §9.3).
#pragma once

#include <cstdint>
#include <vector>

#include "search/plan_space.h"

namespace placet {

/// Units of one kind that follow each other in a chunk.
struct KindRun {
  std::int16_t kind = 0;
  std::int32_t count = 0;
  std::int32_t ordinal = 0;  // of its first block among those of the device
  bool is_block = false;
  bool may_recompute = false;

  friend bool operator==(const KindRun&, const KindRun&) = default;
};

struct DeviceChunk {
  std::vector<KindRun> runs;
  std::int32_t stage = 0;       // virtual stage
  std::int32_t count = 0;       // units
  bool sends_forward = false;   // its outputs leave for another stage
  bool sends_backward = false;  // so do gradients of its inputs
};

struct PipelineShape {
  Schedule schedule;  // of one device: the plainest one
  std::vector<std::vector<DeviceChunk>> devices;
  std::vector<std::vector<std::int32_t>> units;          // by device, kind: how many
  std::vector<std::vector<std::int32_t>> unlike;         // the different ones of these
  std::vector<PlanSpace::Recomputation> recomputations;  // those of one word in rising order
  std::vector<std::int32_t> like;  // by device: the first one with the same runs and messages
};

/// REQUIRES: the split is one of the space's.
PipelineShape pipeline_shape(const PlanSpace& space, std::int32_t degree, std::int16_t schedule,
                             std::int16_t split, Job& job);

/// Exactly, or a bound that falls as the count of `every` rises, and rises with that of `first`.
enum class Counting : std::uint8_t { exact, fewest, most };

/// How many units of a run are recomputed.
std::int64_t recomputed_of(const KindRun& run, const Recompute& recompute,
                           Counting counting = Counting::exact);

}  // namespace placet
