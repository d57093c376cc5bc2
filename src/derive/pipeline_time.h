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

struct PipelineWork {
  Schedule schedule;
  std::int64_t micro_batches = 1;
  std::vector<std::vector<ChunkTime>> devices;  // by device, chunk
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

}  // namespace placet
