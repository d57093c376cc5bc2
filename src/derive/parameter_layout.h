// One parameter on one device: what the axes cut of it, how its states rest, along which axes its
// gradient is partial (docs/theory.md §2, §4.2). Inside of layout.cc.
#pragma once

#include <cstdint>
#include <optional>

#include "derive/dim_cutter.h"
#include "derive/divider.h"
#include "derive/layout.h"

namespace placet {

/// What is known of the mesh when parameters are placed.
struct PlacedMesh {
  const Layout& layout;  // stages and micro-batches; its units may still be missing
  const Divider& divider;
  const DimCutter& cutter;
};

/// `block`: the number of the block that the parameter is of, for placements that treat some blocks
/// apart.
LocalParameter place_parameter(const PlacedMesh& mesh, const Parameter& parameter,
                               const PreparedParameter& prepared,
                               std::optional<std::int64_t> block);

/// Takes what is moved off the device anew from the placement's axes.
void place_moved(const Placement& placement, const Parameter& parameter,
                 std::optional<std::int64_t> block, LocalParameter& out);

}  // namespace placet
