// What memory needs to know of a stage whatever its micro-batches: the states of its units at rest,
// the walks through them, the engine's own terms. Stages that are alike share it. Inside of
// memory.cc.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "derive/derivation.h"
#include "derive/layout.h"
#include "derive/stage_units.h"
#include "derive/state_bytes.h"
#include "derive/unit_memory.h"
#include "derive/update_inputs.h"

namespace placet {

/// How a tensor's states are divided.
struct Division {
  std::array<AxisMask, 3> by{};  // by state: the axes
  AxisMask replica_axes = 0;     // along which neighbours hold the same heads
  std::int64_t replicas = 1;

  friend bool operator==(const Division&, const Division&) = default;
};

/// States of tensors that are divided alike.
struct DividedStates {
  Division division;
  StateBytes bytes;
};

/// States at rest of one local unit.
struct UnitStates {
  StateBytes bytes;
  bool shares_tensors = false;       // some parameter is another unit's tensor
  UpdateInputs update;               // unless parts stand apart
  UpdateTimes times;                 // where they do
  std::vector<DividedStates> parts;  // of `bytes`, by division
};

/// Of every local unit of a layout.
struct UnitFigures {
  std::vector<UnitStates> states;
  /// Not recomputed, where there are such; recomputed; recomputed inside of blocks that are made
  /// again together, where there are such: of these forward leaves nothing.
  std::vector<std::array<UnitMemory, 3>> walks;

  const UnitMemory& walk_of(const UnitRun& run) const {
    const std::size_t which = run.inside ? 2 : run.recomputed ? 1 : 0;
    return walks[static_cast<std::size_t>(run.local)][which];
  }
  const UnitMemory& plain_walk_of(const UnitRun& run) const {
    return walks[static_cast<std::size_t>(run.local)][0];
  }
  const UnitStates& states_of(const UnitRun& run) const {
    return states[static_cast<std::size_t>(run.local)];
  }
};

UnitFigures figures_of(const Layout& layout);

/// The gradient of a tensor that an earlier unit owns, where both go to its owners as one: it is
/// there from the backward of the unit that uses it to that of the unit that owns it.
struct WaitingGradient {
  int unit = 0;   // position in Model::units of the unit that uses it
  int owner = 0;  // kind of the unit that owns it
  std::int64_t bytes = 0;
};

struct StageContent {
  StageUnits units;                                   // of one of the stages that share it
  StateBytes rest;                                    // of parameters, optimizer state, gradients
  std::vector<std::vector<DividedStates>> per_local;  // of these, by local unit
  StateBytes beyond_tensors, beside_wholes;           // of these, as an engine stores them
  std::array<std::vector<MemoryTerm>, 3> resting;     // of these, by state: resting_terms
  std::vector<WaitingGradient> waiting;
  std::array<std::int64_t, 4> staged{};  // in host memory, on the way to or from NVMe
  UpdateInputs reduction;  // at the fullest moment of the reductions, and of the updates
  UpdateInputs update;
  std::string_view updated_unit;                     // the kind of unit that is updated then
  std::array<std::int64_t, kInstantCount> engine{};  // bytes of the profile's own terms
};

/// Units gathered ahead of the one that runs.
std::int64_t units_ahead(const Layout& layout);

/// `units`: those of the stage.
StageContent content_of(const Layout& layout, const UnitFigures& figures, const Stage& stage,
                        StageUnits units);

}  // namespace placet
