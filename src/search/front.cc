#include "search/front.h"

#include <algorithm>

namespace placet {
namespace {

/// What the plan after one of `peak` may need at most, in bytes: less than a byte below that where
/// any less will do.
double next_limit(Bytes peak, double step) {
  constexpr double kAnyLess = 0.5;
  const auto bytes = static_cast<double>(in_bytes(peak));
  return std::min(bytes * (1 - step), bytes - kAnyLess);
}

}  // namespace

PlanFront front_of(const PlanSpace& space, const FoundPlan& fastest, const PlanOptions& options,
                   const FrontRequest& request) {
  PlanFront out{.plans = {fastest}};
  PlanOptions one = options;
  one.goal = PlanGoal::time;
  one.top = 1;
  one.cutoff = kNoBound;
  const auto capacity = static_cast<double>(in_bytes(smallest_memory(*space.base().cluster)));
  while (out.plans.size() < request.most) {
    PlanConstraints less = space.constraints();
    less.memory_fraction = next_limit(out.plans.back().figures.needed, request.step) / capacity;
    PlanResult next = find_plans(PlanSpace(space.base(), space.choices(), less), one);
    out.exact = out.exact && next.counts.exact;
    out.whole = next.plans.empty() && next.counts.exact;
    if (next.plans.empty() || !next.counts.exact) break;
    out.plans.push_back(next.plans.front());
  }
  return out;
}

}  // namespace placet
