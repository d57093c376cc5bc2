// What one device of the pipeline does with one micro-batch, and at the end of a step
// (docs/theory.md §7.4): the passes of its chunks, what is left of its messages beside them, the
// reduction of its gradients, its update. Stages of one kind share it. Inside of time.cc.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "derive/collective_time.h"
#include "derive/communication.h"
#include "derive/layout.h"
#include "derive/stage_units.h"
#include "derive/stages.h"
#include "derive/step_messages.h"
#include "derive/unit_time.h"

namespace placet {

/// One pass of a chunk over a micro-batch, in named parts.
struct PassTime {
  Seconds device;     // kernels and exposed messages
  Seconds launch;     // waiting for the host
  AxisTimes exposed;  // of gathers and reductions that repeat per micro-batch
  Seconds whole() const { return device + launch + exposed.total(); }
};

struct ChunkPasses {
  PassTime forward;
  PassTime backward;
  Seconds weights;  // of backward: gradients of weights
};

/// The times of a layout's units, each derived when it is first asked for.
class UnitTimes {
 public:
  UnitTimes(const Layout& layout, const std::vector<UnitMessages>& messages, MessageTimer& timer);

  /// Of one unit of the run.
  const UnitTime& of(const UnitRun& run);

 private:
  UnitTime make(int unit, bool recomputed);

  const Layout& layout_;
  const std::vector<UnitMessages>& messages_;
  MessageTimer& timer_;
  bool recomputes_ = false;
  std::vector<std::array<std::optional<UnitTime>, 2>> times_;  // by local unit: plain, recomputed
};

struct StageWork {
  StepMessages messages;
  std::vector<ChunkPasses> passes;  // by chunk
  AxisTimes reduce;                 // what is left of reductions after the last backward
  Seconds update;
};

/// Of the stages of kind `kind`, `stage` being one of them.
StageWork stage_work(const Layout& layout, const Stage& stage, const StageUnits& units,
                     StepMessages messages, UnitTimes& times);

/// What is left of messages beside `room` of computation: at least the first or last of `pieces`,
/// and what computation loses to them. All of them unless they run `beside`.
AxisTimes left_beside(const Job& job, const AxisTimes& messages, Overlap what, Seconds room,
                      std::size_t pieces);

}  // namespace placet
