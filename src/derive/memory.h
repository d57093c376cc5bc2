// Memory per device class: the largest sum of bytes alive over the instants of a step, as named
// terms (docs/theory.md §3).
#pragma once

#include <vector>

#include "derive/derivation.h"
#include "derive/layout.h"
#include "derive/stage_units.h"
#include "derive/stages.h"
#include "derive/unit_memory.h"
#include "schedule/moments.h"

namespace placet {

/// One class per pipeline stage. Terms hold what is alive at the peak and what rests; their sums
/// are the totals.
std::vector<MemoryClass> derive_memory(const Layout& layout, const std::vector<Stage>& stages);

/// By device of a pipeline the moments of its work that memory looks at: its fullest, where one is
/// not the fullest for all; else none. None either where the heaviest are found one device at a
/// time (arrives_in_turn). A function of the schedule alone, the same for many jobs.
PipelineMoments moments_of(const Schedule& schedule, std::int64_t degree,
                           std::int64_t micro_batches);
PipelineMoments moments_of(const Layout& layout);

/// The same where these are known; `units`: by stage.
std::vector<MemoryClass> derive_memory(const Layout& layout, const std::vector<Stage>& stages,
                                       const std::vector<StageUnits>& units,
                                       const PipelineMoments& moments);

/// Elements (or bytes) that a profile's amount comes to on the devices of one stage.
std::int64_t evaluate(const Amount& amount, const Layout& layout, const Stage& stage);

/// Whether every condition holds for the job and a stage.
bool all_hold(const std::vector<When>& when, const Layout& layout, const Stage& stage);

}  // namespace placet
