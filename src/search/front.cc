#include "search/front.h"

namespace placet {
namespace {

constexpr double kNextPart = 0.98;  // of the memory before

}  // namespace

PlanFront front_of(const PlanSpace& space, const FoundPlan& fastest, const PlanOptions& options,
                   std::size_t most) {
  PlanFront out{.plans = {fastest}};
  PlanOptions one = options;
  one.goal = PlanGoal::time;
  one.top = 1;
  one.cutoff = kNoBound;
  const Bytes capacity = smallest_memory(*space.base().cluster);
  while (out.plans.size() < most) {
    PlanConstraints less = space.constraints();
    less.memory_fraction = out.plans.back().figures.peak / capacity * kNextPart;
    PlanResult next = find_plans(PlanSpace(space.base(), space.choices(), less), one);
    out.exact = out.exact && next.counts.exact;
    out.whole = next.plans.empty() && next.counts.exact;
    if (next.plans.empty() || !next.counts.exact) break;
    out.plans.push_back(next.plans.front());
  }
  return out;
}

}  // namespace placet
