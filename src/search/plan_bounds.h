// Bounds from below of a plan's step time and memory, from the costs of its units (docs/theory.md
// §9.3, with the proofs): the exact sums without some of what only makes them larger.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "schedule/moments.h"
#include "search/stage_counts.h"
#include "search/state_costs.h"
#include "search/work_costs.h"
#include "search/work_flow.h"

namespace placet {

/// Costs of units that are not recomputed, and of those that are.
struct WorkPair {
  const WorkCosts* plain = nullptr;
  const WorkCosts* again = nullptr;
};

/// Messages of a plan's step that its time holds beside its kernels, by device of the pipeline;
/// all zero where they are not known yet.
struct StepCosts {
  struct Device {
    double forward = 0;   // per micro-batch: gathers
    double backward = 0;  // likewise, with reductions each time
    double reduce = 0;    // once
    double units = 1;     // it hosts
    friend bool operator==(const Device&, const Device&) = default;
  };
  std::vector<Device> devices;
  double boundary = 0;  // a micro-batch's way to the next stage
  double update = 0;    // the optimizer's kernels, on the slowest device
  double after = 0;     // parameters gathered after the update
};

/// Facts of the engine and the cluster that bounds use.
struct BoundFacts {
  double host_per_pass = 0;
  double host_per_step = 0;
  bool gathers_beside = false;
  bool reductions_beside = false;
  bool update_beside = false;
  bool sender_waits = true;        // of several virtual stages
  bool plain_sender_waits = true;  // of one
  double message_share = 0;
};
BoundFacts bound_facts(const Job& job);

/// Micro-batches that a chunk sees: in two directions half of them.
double rounds_of(const Schedule& schedule, std::int64_t micro_batches);

/// Chunks whose backward is run.
std::int64_t chunks_with_backward(const std::vector<DeviceChunk>& chunks);

/// What a device adds to the time of a step.
struct PathPiece {
  double own = 0;       // all its work
  double reduce = 0;    // after it
  double forward = 0;   // one micro-batch over its first chunk
  double backward = 0;  // likewise
};

/// The longest way through the devices of a pipeline (docs/theory.md §9.3): each starts after one
/// forward of those before it, and ends a backward of each of them before the pipeline does.
class LongestPath {
 public:
  explicit LongestPath(const Schedule& schedule);
  /// In the devices' order.
  void add(const PathPiece& piece);
  double seconds() const { return std::max(end_, whole_ + least_reduce_); }

 private:
  bool fills_ = true;
  bool drains_ = true;
  double end_ = 0;    // of a device with its reduction
  double whole_ = 0;  // of the pipeline
  double before_ = 0;
  double drain_ = 0;
  double least_reduce_ = std::numeric_limits<double>::infinity();
};

/// One pass of a chunk over a micro-batch.
struct PassSums {
  double forward = 0, forward_host = 0;
  double backward = 0, backward_host = 0;
  double weights = 0;
  double longest_backward = 0, longest_weights = 0;
};

/// Seconds that steps of one pipeline take at least. Keeps its sums between calls: one per thread.
class StepBound {
 public:
  StepBound(const BoundFacts& facts, const PipelineShape& pipeline, std::int64_t micro_batches);

  double least(const WorkPair& work, const Recompute& recompute, const StepCosts& messages,
               Counting counting = Counting::exact);

  /// The same by working through the orders of the devices, each piece as long as its kernels and
  /// launches and what is left of gathers beside them (docs/theory.md §9.3). REQUIRES: `flow` is of
  /// the pipeline's schedule, degree and micro-batches.
  double least_by_order(const WorkPair& work, const Recompute& recompute, const StepCosts& messages,
                        WorkFlow& flow);

 private:
  struct Given {
    const StepCosts& messages;

    StepCosts::Device of(std::size_t device) const {
      return device < messages.devices.size() ? messages.devices[device] : StepCosts::Device{};
    }
  };
  /// One micro-batch over a chunk, without its messages to other stages.
  struct ChunkPass {
    double forward = 0;
    double backward = 0;
  };
  bool sender_waits() const {
    return pipeline_.schedule.chunks == 1 ? facts_.plain_sender_waits : facts_.sender_waits;
  }
  /// `own`: as much of the messages of the device as the chunk has.
  ChunkPass pass_over(const DeviceChunk& chunk, const StepCosts::Device& own) const;
  void add_devices(const Given& given);
  double after_backward(const WorkPair& work, const StepCosts& messages) const;
  void add_device(std::size_t device, const Given& given);
  void copy_device(std::size_t from, std::size_t to);
  double longest() const;

  const BoundFacts& facts_;
  const PipelineShape& pipeline_;
  double rounds_ = 1;  // micro-batches that a chunk sees
  bool both_ways_ = false;
  std::vector<PassSums> passes_;            // by part of the pipeline
  std::vector<double> own_;                 // by device: all its work
  std::vector<double> reduce_;              // by device
  std::vector<double> forward_, backward_;  // by virtual stage: one micro-batch
};

/// Seconds that follow the last backward of a step at least: reductions, updates, gathers.
double least_end(const BoundFacts& facts, const PipelineShape& pipeline, const StateCosts& states);

/// Costs that bound from below what any number of recomputed units takes and keeps, by which each
/// unit more that is recomputed takes as long or longer, and keeps as much or less.
struct EasedWork {
  WorkCosts plain;
  WorkCosts again;

  WorkPair pair() const { return {.plain = &plain, .again = &again}; }
};
EasedWork eased(const WorkPair& work);

/// Seconds by which messages of the states make every step of a pipeline longer, at least: what is
/// left of them on the device that has least, whatever runs beside them.
double least_messages(const BoundFacts& facts, const PipelineShape& pipeline,
                      const StateCosts& states, std::int64_t micro_batches);

/// What the states of all units of a model take together.
struct WholeStates {
  double each = 0;             // seconds per micro-batch: what is left of messages
  double once = 0;             // likewise per step, and updates
  std::int64_t rest = 0;       // bytes of parameters, whole over the step or not, and of
                               // optimizer state
  std::int64_t gradients = 0;  // bytes
};
/// `units`: by kind.
WholeStates whole_states(const BoundFacts& facts, const std::vector<std::int32_t>& units,
                         const StateCosts& states);

/// Seconds that a step takes at least, whatever the schedule: the mean over the devices of a
/// pipeline of `degree` of what all units together take, `work` seconds of them a micro-batch's
/// kernels.
struct WholeModel {
  double work = 0;
  std::int64_t degree = 1;
  std::int64_t micro_batches = 1;
};
double least_mean_step(const BoundFacts& facts, const WholeModel& model, const WholeStates& states);

/// Bytes at rest on the mean device of a pipeline of `degree`. `grows`: as of least_rest.
std::int64_t least_mean_rest(std::int64_t degree, const WholeStates& states, bool grows);

/// Seconds of the optimizer's kernels on the device that has most of them.
double update_of(const PipelineShape& pipeline, const StateCosts& states);

/// Micro-batches in flight by device: by chunk those held when they are most; or, of a backward in
/// two parts, the fullest moments.
struct PipelineInFlight {
  std::vector<std::vector<std::int64_t>> held;
  std::vector<std::vector<WorkMoment>> moments;
  std::vector<bool> all;  // by device: whether at all of these each of its chunks holds some
};
PipelineInFlight in_flight_of(const PipelineShape& pipeline, std::int64_t micro_batches);

/// Bytes by device of the pipeline that are alive at one instant, at least: what the micro-batches
/// in flight keep, and what the last unit of the chunk that runs needs beyond it.
std::vector<std::int64_t> least_activations(const PipelineShape& pipeline, const WorkPair& work,
                                            const Recompute& recompute,
                                            const PipelineInFlight& in_flight,
                                            Counting counting = Counting::exact);

/// Bytes by device of the states at the moments that least_activations looks at, at least: at rest,
/// and of parameters that are whole then. `grows`: gradients are not counted, as they may appear in
/// the course of backward only.
std::vector<std::int64_t> least_rest(const PipelineShape& pipeline, const StateCosts& states,
                                     const PipelineInFlight& in_flight, bool grows);

}  // namespace placet
