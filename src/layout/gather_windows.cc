// For how long gathered parameters stay.
#include <ranges>

#include "layout/realised.h"
#include "profile/conditions.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

/// Elements of a model's units from the last on: up to the last block, up to the first unit.
struct Behind {
  std::int64_t last_block = 0;
  std::int64_t all = 0;
};

Behind behind_each(const Model& model) {
  Behind out;
  bool in_tail = true;
  for (const Unit& unit : std::views::reverse(model.units)) {
    const UnitKind& kind = model.kinds[at(unit.kind)];
    for (const Parameter& parameter : kind.parameters) {
      out.all = checked_add(out.all, elements_of(parameter.dims), "elements");
    }
    if (in_tail) out.last_block = out.all;
    if (kind.role == UnitRole::block) in_tail = false;
  }
  return out;
}

}  // namespace

void keep_small_tensors_whole(const Profile& profile, const StepShape&, StepPlan& plan) {
  plan.gathers.whole_below = profile.persistent_elements;
}

void lengthen_windows(const Profile& profile, const StepShape&, StepPlan& plan) {
  plan.gathers.joins_ends = profile.joins_ends;
  if (profile.last_unit_stays_gathered) plan.gathers.head = Keep::backward;
  if (profile.last_block_stays_gathered) plan.gathers.last_block = Keep::backward;
}

void keep_what_is_used_soon(const Job& job, StepPlan& plan) {
  const Profile& profile = job.profile;
  if (profile.reuse_elements == 0 && profile.gather_bucket_elements == 0) return;
  const std::int64_t parts = value_in_job(Symbol::tensor_degree, job).value_or(1);
  const Behind behind = behind_each(job.model);
  if (behind.all / parts <= profile.live_elements) {
    plan.gathers.bucket_elements = profile.gather_bucket_elements;
  }
  const std::int64_t within = checked_multiply(profile.reuse_elements, parts, "elements") / 2;
  if (within == 0) return;
  plan.gathers.head = Keep::backward;
  if (behind.last_block <= within) plan.gathers.last_block = Keep::backward;
  if (behind.all <= within) plan.gathers.all = Keep::backward;
}

void gather_ahead(const Profile& profile, const StepShape&, StepPlan& plan) {
  if (!plan.gathers.ahead) plan.gathers.ahead = profile.prefetch;
}

}  // namespace placet
