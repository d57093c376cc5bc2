// The fullest moments of a device's work: which piece runs, and what other micro-batches have left
// meanwhile (docs/theory.md §3.4). Where backward is split, a micro-batch leaves two different
// things: what its forward kept, until the inputs' part; and what the weights' part reads, between
// the two. No moment is the fullest for every size of these, so that there are several.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace placet {

/// A moment at which a piece of work runs.
struct WorkMoment {
  Work::Kind kind = Work::Kind::forward;
  std::int64_t chunk = 0;
  /// By chunk, without the micro-batch that runs: those that have gone forward and not begun
  /// backward; and those between the inputs' and the weights' part.
  std::vector<std::int64_t> held;
  std::vector<std::int64_t> waiting;
  /// Values and gradients that wait for a chunk that has not begun to work on them: from another
  /// chunk of the device, where it turns a vee; or from another device, as messages arrive in the
  /// order in which they were sent.
  std::int64_t arrived = 0;

  friend bool operator==(const WorkMoment&, const WorkMoment&) = default;
};

/// By device of a pipeline.
using PipelineMoments = std::vector<std::vector<WorkMoment>>;

/// All moments of which no other with the same kind and chunk has as much of everything,
/// in the order of work. Of a split backward O(degree) pieces of work of each device are looked at,
/// however many micro-batches there are: beyond twice the degree the orders only repeat rounds that
/// end as they begin (a test compares with all micro-batches). Case: weights' parts that lag one
/// micro-batch behind (split_single), degree 2, m = 4: on device 1 each of the three kinds of work
/// runs beside none that is held and one that waits.
PipelineMoments fullest_moments(const Schedule& schedule, std::int64_t degree,
                                std::int64_t micro_batches);

}  // namespace placet
