// How long a pipeline takes, from the order in which its devices work (docs/theory.md §7.4). No
// formula of bubbles: every device works through its list, and waits where a message is not there
// yet.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"
#include "units/quantity.h"

namespace placet {

/// One chunk of one device over one micro-batch.
struct ChunkTime {
  Seconds forward;
  Seconds backward;         // both parts
  Seconds backward_weight;  // of these: for the weights, which split schedules put off
  friend bool operator==(const ChunkTime&, const ChunkTime&) = default;
};

/// Which work there is in a step of a pipeline, and what waits for what, however long it takes: the
/// time of a step, its events and the bounds of searches all go by it.
struct PipelineForm {
  Schedule schedule;
  std::int64_t degree = 1;
  std::int64_t micro_batches = 1;
  BackwardReach backward;

  friend bool operator==(const PipelineForm&, const PipelineForm&) = default;
};

/// Where a chunk of a device stands in the pipeline: micro-batches of its virtual stage have cells
/// from `first_cell` on, of the stage before `micro_batches` less and of the one after it so many
/// more. Two directions have cells of their own.
struct PipelineSeat {
  std::int64_t first_cell = 0;
  bool first = false;  // the first virtual stage
  bool last = false;
  bool hands_back = true;  // the stage before waits for the gradient of what it gave

  /// Whether the work begins with a message of another stage, and ends with one to another. Without
  /// one the last stage's backward begins with its own forward, all else at once.
  bool receives(Work::Kind kind) const { return passes_on(kind, !first, !last); }
  bool sends(Work::Kind kind) const { return passes_on(kind, !last, hands_back); }

 private:
  static bool passes_on(Work::Kind kind, bool forward, bool backward) {
    if (kind == Work::Kind::backward_weight) return false;
    return kind == Work::Kind::forward ? forward : backward;
  }
};
PipelineSeat seat_of(const PipelineForm& form, std::int64_t device, std::int64_t chunk);

/// All cells.
std::int64_t pipeline_cells(const PipelineForm& form);

/// What a device works through: what its schedule says, but for the backward of stages that it does
/// not reach.
std::vector<Work> work_of(const PipelineForm& form, std::int64_t device);

struct PipelineWork {
  PipelineForm form;
  std::vector<std::vector<ChunkTime>> devices;  // by device, chunk; as many as the form's degree
  Seconds message;                              // from one stage to the next, and back
  bool sender_waits = true;                     // the sender is busy as long as its message travels
};

struct PipelineTime {
  Seconds whole;                 // from the first forward to the last backward
  std::vector<Seconds> busy;     // by device, messages that it waits for as a sender included
  std::vector<Seconds> sending;  // of these
  std::vector<Seconds> end;      // by device: when its last work is done
};

/// O(degree x chunks x micro-batches). Case: degree 2, one chunk of 1 s forward and 2 s backward,
/// four micro-batches, messages for nothing: 4 x 3 + 3 = 15 s.
/// Throws InternalError if the order of work deadlocks.
PipelineTime pipeline_time(const PipelineWork& work);

/// What no order of work can beat, in O(degree x chunks): a device's first work waits for the
/// forwards of the stages before its first, all its work is its own, and unless backward is split
/// its last backward is followed by those of the stages before. Equal to pipeline_time where one
/// chunk per device passes forward and backward in turns and all stages take the same; for searches
/// that need a bound. Proof: the three spans follow each other on one path of dependencies.
Seconds least_pipeline_time(const PipelineWork& work);

}  // namespace placet
