#include "search/prove.h"

#include <tbb/parallel_for.h>

#include "check/check.h"
#include "derive/stages.h"
#include "lower/lower.h"
#include "profile/conditions.h"
#include "units/error.h"

namespace placet {

PlanProof prove(const Job& job) {
  try {
    const Verdict verdict = check(lower(job));
    if (verdict.equivalent) return {.kind = PlanProof::Kind::proven, .reason = {}};
    const std::string reason = verdict.findings.empty() ? std::string("a condition does not hold")
                                                        : verdict.findings.front().difference;
    return {.kind = PlanProof::Kind::broken, .reason = reason};
  } catch (const InputError& error) {
    InputFault fault = error.fault();
    fault.where.clear();  // no flag of the caller
    return {.kind = PlanProof::Kind::unproven, .reason = describe(fault)};
  }
}

std::vector<PlanProof> prove_all(const PlanSpace& space, const std::vector<Plan>& plans,
                                 std::int64_t most_passes, const std::function<bool()>& may_begin) {
  std::vector<PlanProof> out(plans.size());
  tbb::parallel_for(std::size_t{0}, plans.size(), [&](std::size_t i) {
    Job job = space.base();
    space.apply(plans[i], job);
    if (may_begin() && passes_to_prove(job) <= most_passes) {
      out[i] = prove(job);
    } else {
      out[i].reason = "too long to be judged here; `placet check` with its flags does it";
    }
  });
  return out;
}

std::int64_t passes_to_prove(const Job& job) {
  const std::int64_t degree = pipeline_degree(job.placement);
  const std::int64_t stages = degree == 1 ? 1 : degree * job.schedule.chunks;
  return stages * micro_batches_per_step(job);
}

}  // namespace placet
