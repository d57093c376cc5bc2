// Which units the devices of a pipeline host, as counts by kind: what bounds are summed over
// (docs/theory.md §9.3).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "derive/pipeline_time.h"
#include "search/plan_space.h"

namespace placet {

/// Units of one kind that follow each other in a chunk.
struct KindRun {
  std::int32_t kind = 0;  // PlanSpace::costed_kind
  std::int32_t count = 0;
  std::int32_t ordinal = 0;  // of its first block among those of the device
  bool is_block = false;
  bool may_recompute = false;

  friend bool operator==(const KindRun&, const KindRun&) = default;
};

struct DeviceChunk {
  std::vector<KindRun> runs;
  std::int32_t part = 0;        // of PipelineShape::parts: the same runs
  std::int32_t stage = 0;       // virtual stage
  std::int32_t count = 0;       // units
  bool sends_forward = false;   // its outputs leave for another stage
  bool sends_backward = false;  // so do gradients of its inputs
  bool runs_backward = true;    // something here or before it is trained
};

struct PipelineShape {
  Schedule schedule;  // of one device: the plainest one
  BackwardReach backward;
  std::vector<std::vector<DeviceChunk>> devices;
  std::vector<std::vector<KindRun>> parts;               // the different runs of all chunks
  std::vector<std::vector<std::int32_t>> units;          // by device, kind: how many
  std::vector<std::vector<std::int32_t>> unlike;         // the different ones of these
  std::vector<PlanSpace::Recomputation> recomputations;  // those of one word in rising order
  std::vector<std::int32_t> like;  // by device: the first one with the same runs and messages
};

/// The same for the order of work.
PipelineForm form_of(const PipelineShape& pipeline, std::int64_t micro_batches);

/// REQUIRES: the split is one of the space's.
PipelineShape pipeline_shape(const PlanSpace& space, std::int32_t degree, std::int16_t schedule,
                             std::int16_t split, Job& job);

/// Exactly, or a bound that falls as the count of `every` rises, and rises with that of `first`.
enum class Counting : std::uint8_t { exact, fewest, most };

/// No model has as many blocks.
inline constexpr std::int64_t kMoreThanAll = 1 << 30;

/// How many of `run`'s units have a number that `step` divides, the first unit's being its ordinal.
/// A run that is no block is counted as a whole. Searches spend their time here: short numbers are
/// divided quickly.
inline std::int32_t multiples_in(const KindRun& run, std::int32_t step, Counting counting) {
  switch (counting) {
    case Counting::exact:
      if (!run.is_block) return run.ordinal % step == 0 ? run.count : 0;
      return (run.ordinal + run.count + step - 1) / step - (run.ordinal + step - 1) / step;
    case Counting::fewest:
      return run.is_block ? run.count / step : 0;
    case Counting::most:
      return run.is_block ? (run.count + step - 1) / step : run.count;
  }
  return 0;
}

/// Whether some of the units that may be recomputed are, and others are not.
inline bool takes_some(const Recompute& recompute) {
  return recompute.kind == Recompute::Kind::every || recompute.kind == Recompute::Kind::first;
}

/// How many units of a run are recomputed.
inline std::int32_t recomputed_of(const KindRun& run, const Recompute& recompute,
                                  Counting counting = Counting::exact) {
  if (!run.may_recompute) return 0;
  const auto n = static_cast<std::int32_t>(std::min(recompute.count, kMoreThanAll));
  switch (recompute.kind) {
    case Recompute::Kind::none:
      return 0;
    case Recompute::Kind::full:
    case Recompute::Kind::selective:
    case Recompute::Kind::uniform:
      return run.count;
    case Recompute::Kind::every:
      return n < 1 ? 0 : multiples_in(run, n, counting);
    case Recompute::Kind::first:
      if (!run.is_block) return run.ordinal < n ? run.count : 0;
      return std::clamp(n - run.ordinal, 0, run.count);
  }
  return 0;
}

}  // namespace placet
