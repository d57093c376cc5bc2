// When gradients go to their owners.
#include "layout/realised.h"

namespace placet {
namespace {

void reduce_once(const Profile& profile, ReductionTerms& reductions) {
  reductions.once_a_step = true;
  if (profile.defers_as_reduced) reductions.waits_in = reductions.messages;
}

}  // namespace

void put_off_reductions(const Profile& profile, const StepShape& shape, StepPlan& plan) {
  if (profile.defers_scatter && shape.micro_batches > 1) reduce_once(profile, plan.reductions);
}

void hold_over_pipeline(const Profile& profile, const StepShape& shape, StepPlan& plan) {
  if (!profile.layer_cut_defers_sharding || shape.stages == 1) return;
  plan.gathers.once_a_step = true;
  reduce_once(profile, plan.reductions);
}

void sum_replicas_each(const Profile& profile, const StepShape&, StepPlan& plan) {
  plan.reductions.replicas_each = profile.replicas_follow_scatter;
  plan.reductions.whole_each = profile.replicas_each_micro_batch;
}

void keep_table_gradients_whole(const Profile& profile, const StepShape&, StepPlan& plan) {
  plan.reductions.tables_whole = profile.table_gradients_whole;
}

}  // namespace placet
