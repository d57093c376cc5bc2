// For how long gathered parameters stay.
#include "layout/realised.h"

namespace placet {

void keep_small_tensors_whole(const Profile& profile, const StepShape&, StepPlan& plan) {
  plan.gathers.whole_below = profile.persistent_elements;
}

void lengthen_windows(const Profile& profile, const StepShape&, StepPlan& plan) {
  plan.gathers.joins_ends = profile.joins_ends;
  if (profile.last_unit_stays_gathered) plan.gathers.head = Keep::backward;
  if (profile.last_block_stays_gathered) plan.gathers.last_block = Keep::backward;
}

void gather_ahead(const Profile& profile, const StepShape&, StepPlan& plan) {
  if (!plan.gathers.ahead) plan.gathers.ahead = profile.prefetch;
}

}  // namespace placet
