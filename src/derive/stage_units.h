// The units of a stage as runs of equal ones: what memory and communication count instead of units.
// Stages with the same runs are alike in all but the micro-batches they hold, and share their
// derivation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cluster/cluster.h"
#include "derive/layout.h"
#include "derive/stages.h"

namespace placet {

/// Units of one chunk, one after another, that differ in nothing but their number.
struct UnitRun {
  int local = 0;  // in Layout::units
  int first = 0;  // position in Model::units of the first
  std::int64_t count = 0;
  bool recomputed = false;  // as the job's choice says; units that are no blocks never are
  bool last_block = false;  // the model's last: engines may treat it apart
  /// Blocks that are made again together, itself included; `inside`: another one of them is the
  /// first, whose input is all that forward leaves of them.
  std::int64_t together = 1;
  bool inside = false;
};

struct StageUnits {
  std::vector<UnitRun> runs;            // chunk by chunk
  std::vector<std::size_t> chunk_ends;  // by chunk: one past its last run
  std::vector<bool> runs_backward;      // by chunk
  bool hosts_first = false;
  bool hosts_last = false;
  GroupSet groups;  // the devices it stands on, which wait for one another; none: no cluster

  std::size_t chunk_begin(std::size_t chunk) const {
    return chunk == 0 ? 0 : chunk_ends[chunk - 1];
  }
};

StageUnits units_of(const Layout& layout, const Stage& stage);
std::vector<StageUnits> units_by_stage(const Layout& layout, const std::vector<Stage>& stages);

/// Whether two devices of the same groups host the same units, their numbers left aside. Case: 32
/// blocks on 4 stages: the second and the third.
bool are_alike(const StageUnits& a, const StageUnits& b);

}  // namespace placet
