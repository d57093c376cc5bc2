// Whether a plan is the training it claims to be: its step program, judged (docs/theory.md §6).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "profile/job.h"
#include "search/plan_space.h"

namespace placet {

struct PlanProof {
  enum class Kind : std::uint8_t { proven, broken, unproven };
  Kind kind = Kind::unproven;
  std::string reason;  // of broken and unproven

  friend bool operator==(const PlanProof&, const PlanProof&) = default;
};

/// Lowers the job under the plain theory and checks the program. unproven: the job has parts that
/// have no program form yet.
PlanProof prove(const Job& job);

/// The same for several plans, side by side. Plans with more than `most_passes`, and those whose
/// turn comes when `may_begin` says no more, are left unproven.
std::vector<PlanProof> prove_all(const PlanSpace& space, const std::vector<Plan>& plans,
                                 std::int64_t most_passes, const std::function<bool()>& may_begin);

/// How much there is to judge, in passes of a stage over a micro-batch: what the time of prove()
/// follows.
std::int64_t passes_to_prove(const Job& job);

}  // namespace placet
