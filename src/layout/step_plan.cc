#include "layout/step_plan.h"

#include <array>

#include "layout/realised.h"

namespace placet {
namespace {

using Pass = void (*)(const Profile&, const StepShape&, StepPlan&);

/// All that engines change of a plan. What one of them does nothing about stays as it was.
constexpr std::array<Pass, 7> kPasses{
    keep_small_tensors_whole,  lengthen_windows,   gather_ahead,
    put_off_reductions,        hold_over_pipeline, sum_replicas_each,
    keep_table_gradients_whole};

}  // namespace

StepPlan plain_plan(const Placement& placement, const Precision& precision) {
  StepPlan plan;
  for (const AxisPlacement& axis : placement.axes) {
    if (axis.how.prefetch) plan.gathers.ahead = axis.how.prefetch;
  }
  plan.reductions.messages = precision.reduce;
  plan.reductions.waits_in = precision.gradients;
  return plan;
}

StepPlan realised_plan(const Job& job, const StepShape& shape) {
  StepPlan plan = plain_plan(job.placement, job.precision);
  for (const Pass pass : kPasses) pass(job.profile, shape, plan);
  keep_what_is_used_soon(job, plan);
  return plan;
}

bool asks_micro_batches(const Job& job) {
  const StepShape one{.stages = 1, .micro_batches = 1};
  const StepShape two{.stages = 1, .micro_batches = 2};
  return realised_plan(job, one) != realised_plan(job, two);
}

}  // namespace placet
