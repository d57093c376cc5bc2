#include "search/prove.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "check/check.h"
#include "derive/stages.h"
#include "lower/lower.h"
#include "profile/conditions.h"
#include "units/error.h"

namespace placet {

namespace {

constexpr auto kTooLong = "too long to be judged here; `placet check` with its flags does it";

/// A plan on its way to its proof.
struct Attempt {
  std::optional<Program> program;  // none: it is left, or has no program
  PlanProof proof;
};

PlanProof unproven(const InputError& error) {
  InputFault fault = error.fault();
  fault.where.clear();  // no flag of the caller
  return {.kind = PlanProof::Kind::unproven, .reason = describe(fault)};
}

Attempt lowered(const Job& job) {
  Attempt out;
  try {
    out.program = lower(job);
  } catch (const InputError& error) {
    out.proof = unproven(error);
  }
  return out;
}

/// What is not right is judged once more for the reason.
PlanProof judged(const Program& program, const KnownReference& known) {
  if (is_right(program, known)) return {.kind = PlanProof::Kind::proven, .reason = {}};
  const Verdict verdict = check(program);
  const bool told = !verdict.findings.empty();
  return {.kind = PlanProof::Kind::broken,
          .reason = told ? verdict.findings.front().difference : "a condition does not hold"};
}

/// Judges all that have a program. They claim to be one training, whose reference is worked out
/// once; null: it was not yet.
void judge_all(std::vector<Attempt>& attempts, std::shared_ptr<const KnownReference> known,
               const std::function<bool()>& may_begin) {
  const auto first = std::ranges::find_if(
      attempts, [](const Attempt& attempt) { return attempt.program.has_value(); });
  if (first == attempts.end()) return;
  if (!known) known = known_reference(*first->program);
  tbb::parallel_for(std::size_t{0}, attempts.size(), [&](std::size_t i) {
    Attempt& own = attempts[i];
    if (!own.program) return;
    if (may_begin()) {
      own.proof = judged(*own.program, *known);
    } else {
      own.proof.reason = kTooLong;
    }
  });
}

}  // namespace

PlanProof prove(const Job& job) {
  const Attempt attempt = lowered(job);
  if (!attempt.program) return attempt.proof;
  return judged(*attempt.program, *known_reference(*attempt.program));
}

std::vector<PlanProof> prove_all(const PlanSpace& space, const std::vector<Plan>& plans,
                                 std::int64_t most_passes, const std::function<bool()>& may_begin) {
  std::vector<Attempt> attempts(plans.size());
  std::shared_ptr<const KnownReference> known;  // worked out beside the lowering of other plans
  tbb::parallel_for(std::size_t{0}, plans.size(), [&](std::size_t i) {
    Job job = space.base();
    space.apply(plans[i], job);
    if (may_begin() && passes_to_prove(job) <= most_passes) {
      attempts[i] = lowered(job);
      if (i == 0 && attempts[i].program) known = known_reference(*attempts[i].program);
    } else {
      attempts[i].proof.reason = kTooLong;
    }
  });
  judge_all(attempts, std::move(known), may_begin);
  std::vector<PlanProof> out;
  out.reserve(attempts.size());
  for (Attempt& attempt : attempts) out.push_back(std::move(attempt.proof));
  return out;
}

std::int64_t passes_to_prove(const Job& job) {
  const std::int64_t degree = pipeline_degree(job.placement);
  const std::int64_t stages = degree == 1 ? 1 : degree * job.schedule.chunks;
  return stages * micro_batches_per_step(job);
}

}  // namespace placet
