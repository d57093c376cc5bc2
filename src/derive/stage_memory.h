// The instants of a step on one stage: what is alive at the fullest moment of each, and the terms
// that make up the fullest of all. Inside of memory.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "derive/gathered_memory.h"
#include "derive/stage_content.h"
#include "schedule/moments.h"

namespace placet {

/// One moment with its bytes by category.
struct Moment {
  Instant instant = Instant::forward;
  int unit = -1;                        // position in Model::units
  std::size_t chunk = 0;                // that runs
  const UnitMemory* running = nullptr;  // its walk
  std::int64_t gradients = 0;
  std::int64_t activations = 0;  // kept by other units and micro-batches
  std::int64_t waiting = 0;      // by those between the two parts of a split backward
  std::int64_t arrived = 0;      // streams for chunks that have not begun to work on them
  UnitPeak peak;                 // of the unit that runs
  GatheredBytes gathered;
  std::int64_t held_gradients = 0;  // of weights of the units behind, of this micro-batch
  UpdateInputs update;              // what reductions and the update need beside the states
  std::int64_t total = 0;
};

/// Micro-batches in flight by chunk: those that keep what forward left, and those between the two
/// parts of a split backward.
struct MicroBatchesHeld {
  std::vector<std::int64_t> held;
  std::vector<std::int64_t> waiting;
};

/// Activations that the micro-batches in flight keep.
struct HeldActivations {
  MicroBatchesHeld most;
  std::size_t active = 0;    // the chunk that runs: the last to hold any
  std::int64_t bytes = 0;    // on the device, at the fullest moment
  std::int64_t waiting = 0;  // of these, of micro-batches between the parts of backward
  std::int64_t on_host = 0;
  std::int64_t on_nvme = 0;
  std::int64_t staged = 0;  // of one unit, on its way to NVMe
};

/// By device of the pipeline: its fullest moments, if backward is in two parts; else none.
std::vector<std::vector<WorkMoment>> moments_of(const Layout& layout);

/// Micro-batches in flight of each chunk when they keep most: by their number, or, of a backward in
/// two parts, by the bytes that they leave.
MicroBatchesHeld held_by_chunk(const Layout& layout, const Stage& stage, const UnitFigures& figures,
                               const StageUnits& units, const std::vector<WorkMoment>& moments);

/// All that the terms of a stage are written from.
struct StageFigures {
  const Layout& layout;
  const Stage& stage;
  const StageUnits& units;  // its own: those of the content may be of another stage
  const StageContent& content;
  const std::vector<WorkMoment>& moments;
  HeldActivations activations;
  std::array<Moment, kInstantCount> instants{};
};

/// The class of the stage, with the terms of its fullest instant.
MemoryClass described(const StageFigures& figures);

}  // namespace placet
