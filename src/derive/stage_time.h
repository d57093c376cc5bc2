// What one device of the pipeline does with one micro-batch, and at the end of a step
// (docs/theory.md §7.4): the passes of its chunks, what is left of its messages beside them, the
// reduction of its gradients, its update. Stages of one kind share it. For time.cc and
// step_parts.cc.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
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

  /// Of one unit of the run, on devices of these groups.
  const UnitTime& of(const UnitRun& run, const GroupSet& devices);

 private:
  /// By local unit: plain, recomputed.
  using Known = std::vector<std::array<std::optional<UnitTime>, 2>>;

  Known& known_on(const GroupSet& devices);
  UnitTime make(int unit, bool recomputed, const GroupSet& devices);

  const Layout& layout_;
  const std::vector<UnitMessages>& messages_;
  MessageTimer& timer_;
  bool recomputes_ = false;
  std::vector<std::pair<GroupSet, Known>> times_;
};

/// One part of one unit in a pass, as device and host run it.
struct PassPart {
  const UnitRun* run = nullptr;
  std::int64_t number = 0;  // of the unit in its run
  WorkPart part = WorkPart::forward;
  const PartTime* time = nullptr;
  Seconds weights;  // of backward: gradients of weights
  Seconds wait;     // the device waits so long for its host
};

/// The host launches ahead of the device: a part ends when both are done with it, and begins as
/// soon as the device is free and its first kernel launched.
class LaunchQueue {
 public:
  /// What the device waits for its host in a part whose work takes `length`.
  Seconds run(const PartTime& part, Seconds length);

  PassTime pass(Seconds fixed) const {
    // Sums in another order: nothing is waited for where the two differ by rounding alone.
    return {.device = work_, .launch = std::max(Seconds(), device_ - work_) + fixed, .exposed = {}};
  }

 private:
  void launch(Seconds length, Seconds by_host);

  Seconds host_, device_, work_;
};

/// The queues of a chunk's two passes.
struct PassQueues {
  LaunchQueue forward, backward;

  LaunchQueue& of(WorkPart part) { return part == WorkPart::forward ? forward : backward; }
};

/// What the parts of a unit take on the device.
using PartLengths = std::array<Seconds, kPartCount>;

/// The parts of one unit that take time.
template <class Visit>
void run_unit(PassPart unit, const UnitTime& time, const PartLengths& lengths, PassQueues& queues,
              Visit visit) {
  unit.weights = time.weights;
  for (const WorkPart part : {WorkPart::forward, WorkPart::again, WorkPart::backward}) {
    const Seconds length = lengths[static_cast<std::size_t>(part)];
    if (length == Seconds()) continue;
    unit.part = part;
    unit.time = &time[part];
    unit.wait = queues.of(part).run(time[part], length);
    visit(unit);
  }
}

/// The units of one chunk, one after another; `visit` sees each PassPart that takes time, in order
/// of the units, forward, recomputation and backward of one after the other.
template <class Visit>
ChunkPasses run_chunk(const StageUnits& units, std::size_t chunk, Seconds host_per_pass,
                      UnitTimes& times, Visit visit) {
  PassQueues queues;
  ChunkPasses out;
  for (std::size_t r = units.chunk_begin(chunk); r < units.chunk_ends[chunk]; ++r) {
    const UnitRun& run = units.runs[r];
    const UnitTime& time = times.of(run, units.groups);
    const PartLengths lengths = {time[WorkPart::forward].device(), time[WorkPart::again].device(),
                                 time[WorkPart::backward].device()};
    for (std::int64_t i = 0; i < run.count; ++i) {
      run_unit({.run = &run, .number = i}, time, lengths, queues, visit);
      out.weights += time.weights;
    }
  }
  out.forward = queues.forward.pass(host_per_pass);
  out.backward = queues.backward.pass(host_per_pass);
  return out;
}

struct StageWork {
  StepMessages messages;
  std::vector<ChunkPasses> passes;  // by chunk
  AxisTimes reduce;                 // what is left of reductions after the last backward
  Seconds update;
  AxisTimes after;  // what the next forward leaves of the messages after the update
};

/// Of the stages of kind `kind`, `stage` being one of them.
StageWork stage_work(const Layout& layout, const Stage& stage, const StageUnits& units,
                     StepMessages messages, UnitTimes& times);

}  // namespace placet
