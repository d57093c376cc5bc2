// Bounds from below of a plan's step time and memory, from the costs of its units (docs/theory.md
// §8.3, with the proofs). Everything here leaves out of the exact sums what only makes them larger.
#pragma once

#include <cstdint>
#include <vector>

#include "search/stage_counts.h"
#include "search/state_costs.h"
#include "search/work_costs.h"

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
  bool sender_waits = true;
  double message_share = 0;
};
BoundFacts bound_facts(const Job& job);

/// A pipeline's step of `micro_batches`, with its recomputation.
struct BoundedWork {
  const PipelineShape& pipeline;
  WorkPair work;
  const Recompute& recompute;
  std::int64_t micro_batches = 1;
};

/// Seconds that the step takes at least.
double least_step(const BoundFacts& facts, const BoundedWork& work, const StepCosts& messages);

/// Seconds of the optimizer's kernels on the device that has most of them.
double update_of(const PipelineShape& pipeline, const StateCosts& states);

/// Bytes by device of the pipeline that are alive at one instant of backward, at least: what the
/// micro-batches in flight keep, and what the fullest last unit needs beyond it.
std::vector<std::int64_t> least_activations(const BoundedWork& work,
                                            const std::vector<std::vector<std::int64_t>>& held);

/// Bytes at rest by device. `grows`: gradients are not counted, as they may appear in the course of
/// backward only.
std::vector<std::int64_t> least_rest(const PipelineShape& pipeline, const StateCosts& states,
                                     bool grows);

/// Micro-batches in flight by device and chunk.
std::vector<std::vector<std::int64_t>> held_of(const PipelineShape& pipeline,
                                               std::int64_t micro_batches);

}  // namespace placet
