// What a step does with parameters and gradients beyond their modes, as terms: decided once for a
// job, then read by memory, messages, reserved memory, bounds and the step program alike
// (docs/theory.md §8). Readers of a plan ask no engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "model/model.h"
#include "placement/placement.h"
#include "profile/training.h"

namespace placet {

/// For how long parameters that rest in part are there whole.
struct GatherTerms {
  std::int64_t whole_below = 0;       // tensors of fewer elements on a device rest whole
  bool once_a_step = false;           // gathered before the first micro-batch, freed after the last
  std::optional<std::int64_t> ahead;  // units gathered before their turn; none: not said, no unit
  bool joins_ends = false;  // embedding and head are one unit, from its first to its last use
  std::int64_t bucket_elements = 0;  // tensors that follow each other are gathered together until
                                     // there are so many; 0: by the engine's grain
  Keep all = Keep::none;             // at least so long, whatever the placement says
  Keep head = Keep::none;
  Keep last_block = Keep::none;

  friend bool operator==(const GatherTerms&, const GatherTerms&) = default;
};

/// When gradients go to their owners, and as what.
struct ReductionTerms {
  bool once_a_step = false;  // after the last micro-batch, although the placement scatters earlier
  bool replicas_each = false;  // where some axes scatter in each micro-batch, all others sum then
  bool whole_each = false;     // what no axis scatters is summed in each micro-batch too
  bool tables_whole = false;   // of tables whose rows axes divide, until they are scattered
  Dtype messages = Dtype::fp32;
  Dtype waits_in = Dtype::fp32;  // what gradients that stay whole for once_a_step are added up in

  friend bool operator==(const ReductionTerms&, const ReductionTerms&) = default;
};

struct StepPlan {
  GatherTerms gathers;
  ReductionTerms reductions;

  friend bool operator==(const StepPlan&, const StepPlan&) = default;
};

/// What the terms of a plan may depend on beside the job's own choices.
struct StepShape {
  std::int64_t stages = 1;
  std::int64_t micro_batches = 1;
};

/// The rules of docs/theory.md §4 as they stand.
StepPlan plain_plan(const Placement& placement, const Precision& precision);

inline bool is_end(UnitRole role) { return role == UnitRole::embedding || role == UnitRole::head; }

/// Whether backward finds the unit's parameters whole as forward left them.
inline bool stays_to_backward(const GatherTerms& gathers, UnitRole role) {
  return gathers.all != Keep::none || (role == UnitRole::head && gathers.head != Keep::none) ||
         (gathers.joins_ends && is_end(role));
}

/// For how long a unit stays whole that its placement keeps for `placed`.
inline Keep kept_whole(const GatherTerms& gathers, UnitRole role, bool last_block, Keep placed) {
  if (gathers.joins_ends && is_end(role)) return Keep::step;
  placed = std::max(placed, gathers.all);
  if (role == UnitRole::head) placed = std::max(placed, gathers.head);
  return last_block ? std::max(placed, gathers.last_block) : placed;
}

}  // namespace placet
