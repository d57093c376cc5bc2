#include "search/prove.h"

#include <tbb/parallel_for.h>
#include <tbb/parallel_invoke.h>
#include <tbb/task_arena.h>

#include <memory>
#include <mutex>
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

/// The reference that all plans claim to train as, worked out once: with the first program that is
/// there.
class SharedReference {
 public:
  const KnownReference& of(const Program& program) {
    std::call_once(once_, [&] { known_ = known_reference(program); });
    return *known_;
  }

 private:
  std::once_flag once_;
  std::shared_ptr<const KnownReference> known_;
};

/// What is not right is judged once more for the reason.
PlanProof judged(const Program& program, SharedReference& reference) {
  bool in_order = false;
  bool right = false;
  // While it waits for a half, no thread is to begin with another program: they are large.
  tbb::this_task_arena::isolate([&] {
    tbb::parallel_invoke([&] { in_order = is_in_order(program); },
                         [&] { right = has_right_values(program, reference.of(program)); });
  });
  if (in_order && right) return {.kind = PlanProof::Kind::proven, .reason = {}};
  const Verdict verdict = check(program);
  const bool told = !verdict.findings.empty();
  return {.kind = PlanProof::Kind::broken,
          .reason = told ? verdict.findings.front().difference : "a condition does not hold"};
}

}  // namespace

PlanProof prove(const Job& job) {
  const Attempt attempt = lowered(job);
  if (!attempt.program) return attempt.proof;
  SharedReference reference;
  return judged(*attempt.program, reference);
}

std::vector<PlanProof> prove_all(const PlanSpace& space, const std::vector<Plan>& plans,
                                 std::int64_t most_passes, const std::function<bool()>& may_begin) {
  std::vector<PlanProof> out(plans.size());
  SharedReference reference;
  // One program at a time on each processor: they are large.
  tbb::parallel_for(std::size_t{0}, plans.size(), [&](std::size_t i) {
    Job job = space.base();
    space.apply(plans[i], job);
    out[i].reason = kTooLong;
    if (!may_begin() || passes_to_prove(job) > most_passes) return;
    const Attempt attempt = lowered(job);
    if (!attempt.program) {
      out[i] = attempt.proof;
    } else if (may_begin()) {
      out[i] = judged(*attempt.program, reference);
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
