// Which units each device of a layer cut hosts, and in which order it works. Inside of lower/.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "profile/job.h"

namespace placet {

/// Micro-batches `first` to `last` of the step.
struct MicroBatches {
  std::int64_t first = 0;
  std::int64_t last = 0;

  friend bool operator==(const MicroBatches&, const MicroBatches&) = default;
};

struct StagePlan {
  std::int64_t coordinate = 0;               // along the layer axis
  std::vector<std::vector<int>> chunks;      // units by chunk
  std::vector<std::int64_t> virtual_stages;  // by chunk
  std::vector<MicroBatches> micro_batches;   // by chunk: all, or those of its direction
  std::vector<Work> work;                    // micro-batches counted over the whole step
  int first_asked = 1;  // units from this position on are asked for the gradient of their input
  /// By chunk, the coordinate of the device that has the virtual stage before and after it; -1:
  /// there is none. Of two that have it the one where it is the same chunk.
  std::vector<std::int64_t> before;
  std::vector<std::int64_t> after;
};

/// What a unit hands to another device: the stream that enters unit `unit`, or its gradient.
struct StageMessage {
  bool gradient = false;
  int unit = 0;
  std::int64_t micro_batch = 0;
  std::int64_t from = 0;  // coordinates along the layer axis
  std::int64_t to = 0;

  friend bool operator==(const StageMessage&, const StageMessage&) = default;
};

/// What a piece of work of the stage needs from another device, and what it gives to one. None at
/// the ends, between chunks of one device, and for the weights' part of backward.
std::optional<StageMessage> message_before(const StagePlan& stage, const Work& work);
std::optional<StageMessage> message_after(const StagePlan& stage, const Work& work);
/// All that one device sends to another, in order.
std::deque<StageMessage> messages_between(const std::vector<StagePlan>& stages, std::int64_t from,
                                          std::int64_t to);

/// The position of the layer axis in the placement; -1: none.
int layer_axis(const Placement& placement);

/// Whether the schedule does backward for inputs and for weights apart.
bool splits_backward(const Job& job);

/// One plan per coordinate of the layer axis; one if there is none. Throws InputError for
/// schedules that have no form here yet.
std::vector<StagePlan> plan_stages(const Job& job, std::int64_t micro_batches);

}  // namespace placet
