#include "search/prove.h"

#include "check/check.h"
#include "lower/lower.h"
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

}  // namespace placet
