// The instants of a step on one stage: what is alive at the fullest moment of each, and the terms
// that make up the fullest of all. Inside of memory.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "derive/gathered_memory.h"
#include "derive/stage_content.h"

namespace placet {

/// One moment with its bytes by category.
struct Moment {
  Instant instant = Instant::forward;
  int unit = -1;                        // position in Model::units
  const UnitMemory* running = nullptr;  // its walk
  std::int64_t gradients = 0;
  std::int64_t activations = 0;  // kept by other units and micro-batches
  UnitPeak peak;                 // of the unit that runs
  GatheredBytes gathered;
  std::int64_t held_gradients = 0;  // of weights of the units behind, of this micro-batch
  UpdateInputs update;              // what reductions and the update need beside the states
  std::int64_t total = 0;
};

/// Activations that the micro-batches in flight keep.
struct HeldActivations {
  std::vector<std::int64_t> held;  // micro-batches, by chunk
  std::size_t active = 0;          // the chunk that runs: the last to hold any
  std::int64_t bytes = 0;          // on the device
  std::int64_t on_host = 0;
  std::int64_t on_nvme = 0;
  std::int64_t staged = 0;  // of one unit, on its way to NVMe
};

/// Micro-batches in flight of each chunk at the stage's fullest instant.
std::vector<std::int64_t> held_by_chunk(const Layout& layout, const Stage& stage);

/// All that the terms of a stage are written from.
struct StageFigures {
  const Layout& layout;
  const Stage& stage;
  const StageUnits& units;  // its own: those of the content may be of another stage
  const StageContent& content;
  HeldActivations activations;
  std::array<Moment, kInstantCount> instants{};
};

/// The class of the stage, with the terms of its fullest instant.
MemoryClass described(const StageFigures& figures);

}  // namespace placet
