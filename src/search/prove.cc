#include "search/prove.h"

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
    return {.kind = PlanProof::Kind::unproven, .reason = error.what()};
  }
}

std::int64_t passes_to_prove(const Job& job) {
  const std::int64_t degree = pipeline_degree(job.placement);
  const std::int64_t stages = degree == 1 ? 1 : degree * job.schedule.chunks;
  return stages * micro_batches_per_step(job);
}

}  // namespace placet
