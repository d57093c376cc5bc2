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

/// States at rest of one local unit.
struct UnitStates {
  StateBytes bytes;
  bool shares_tensors = false;  // some parameter is another unit's tensor
  UpdateInputs update;
  std::array<AxisMask, 3> divided_by{};  // by state: axes that divide its largest parameter
};

/// Of every local unit of a layout.
struct UnitFigures {
  std::vector<UnitStates> states;
  std::vector<std::array<UnitMemory, 2>> walks;  // not recomputed, where there are such; recomputed

  const UnitMemory& walk_of(const UnitRun& run) const {
    return walks[static_cast<std::size_t>(run.local)][run.recomputed ? 1 : 0];
  }
  const UnitStates& states_of(const UnitRun& run) const {
    return states[static_cast<std::size_t>(run.local)];
  }
};

UnitFigures figures_of(const Layout& layout);

struct StageContent {
  StageUnits units;
  StateBytes rest;                                  // of parameters, optimizer state, gradients
  std::vector<StateBytes> per_local;                // of these, by local unit
  std::vector<std::array<AxisMask, 3>> divided_by;  // by local unit and state
  std::array<std::int64_t, 4> staged{};             // in host memory, on the way to or from NVMe
  UpdateInputs update;  // of the unit whose update needs most, and its kind
  std::string_view updated_unit;
  std::array<std::int64_t, kInstantCount> engine{};  // bytes of the profile's own terms
};

/// Units gathered ahead of the one that runs.
std::int64_t units_ahead(const Job& job);

StageContent content_of(const Layout& layout, const UnitFigures& figures, const Stage& stage);

}  // namespace placet
