// What an engine's way to store states takes beside the tensors: flat buffers, one of each unit or
// of all tensors, whose shards are rounded once, with alignment and padding; and parts of tensors
// that stay whole.
#pragma once

#include "derive/stage_units.h"
#include "derive/stages.h"
#include "derive/state_bytes.h"

namespace placet {

/// What the states of a stage take at rest beyond those of its tensors each by itself
/// (docs/theory.md §3.1); less than nothing where shards of tensors are rounded up more often than
/// those of the buffer. Zero for engines without flat buffers, for tensors that are not divided and
/// for shards of unequal shares. Case: two tensors of 3 elements over 2 devices: 3 elements on the
/// fullest one, not 2 + 2.
StateBytes beyond_tensors(const Layout& layout, const Stage& stage, const StageUnits& units);

/// The device's parts of small tensors that stay whole, where they rest beside these. Case: a norm
/// weight of 8 elements in bf16 that two devices would share: 8 bytes beside its 16.
StateBytes beside_wholes(const Layout& layout, const Stage& stage, const StageUnits& units);

}  // namespace placet
