// The instants of a step on one stage: what is alive at the fullest moment of each, and the terms
// that make up the fullest of all. Inside of memory.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
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

/// Whether no moment of a device's work is the fullest for all: where backward is in two parts, and
/// where the chunk that runs when most is kept is not the one that needs most itself.
bool looks_at_moments(const Layout& layout);

/// Micro-batches in flight of each chunk when they keep most: by their number, or, of a backward in
/// two parts, by the bytes that they leave.
MicroBatchesHeld held_by_chunk(const Layout& layout, const Stage& stage, const UnitFigures& figures,
                               const StageUnits& units, const std::vector<WorkMoment>& moments);

/// What of them the units of a stage leave.
HeldActivations held_activations(const Layout& layout, const Stage& stage,
                                 const UnitFigures& figures, const StageUnits& units,
                                 const std::vector<WorkMoment>& moments);

/// Bytes beside the micro-batch that runs.
struct BesideRunning {
  std::int64_t kept = 0;     // by micro-batches that have gone forward
  std::int64_t waiting = 0;  // by those between the two parts of backward
  std::int64_t arrived = 0;  // for a chunk that has not begun to work on them

  std::int64_t total() const { return kept + waiting + arrived; }
};

/// Bytes that one micro-batch leaves on a chunk: until backward, and between its two parts.
struct ChunkLeft {
  std::int64_t kept = 0;
  std::int64_t waiting = 0;
};
std::vector<ChunkLeft> left_on_chunks(const UnitFigures& figures, const StageUnits& units);
BesideRunning bytes_of_all(const std::vector<ChunkLeft>& left, const MicroBatchesHeld& in_flight);

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

/// Which chunks have micro-batches in flight.
struct InFlight {
  std::optional<Work::Kind> kind;  // of the work that runs; none: of forward and backward
  std::size_t active = 0;          // the chunk that runs
  bool runs = false;               // it holds a micro-batch that runs ...
  std::vector<bool> beside;        // ... beside others; by chunk

  friend bool operator==(const InFlight&, const InFlight&) = default;
};

/// The fullest moments of one stage, of use to others that are alike.
struct KnownMoments {
  InFlight in_flight;
  int first = 0;  // position of the first unit of the chunk that runs
  BesideRunning beside;
  std::array<Moment, kInstantCount> instants{};  // of forward, loss and backward
};

/// Finds the fullest moment of each instant of a stage. `known`: what was found of stages that are
/// alike, which is added to.
void find_instants(const UnitFigures& units, std::vector<KnownMoments>& known, StageFigures& out);

/// What rests of each state, the same for stages that are alike.
std::array<std::vector<MemoryTerm>, 3> resting_terms(const Layout& layout,
                                                     const StageContent& content);

/// The class of the stage, with the terms of its fullest instant.
MemoryClass described(const StageFigures& figures);

}  // namespace placet
