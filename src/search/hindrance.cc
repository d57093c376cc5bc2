#include "search/hindrance.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "derive/rules.h"

namespace placet {
namespace {

/// Plans that are judged at most: a judgement takes microseconds.
constexpr int kMostJudged = 20'000;

/// An offer for the place of the plan that breaks fewest rules.
class LeastHindered {
 public:
  explicit LeastHindered(const PlanSpace& space) : space_(space), job_(space.base()) {}

  bool is_done() const { return judged_ >= kMostJudged || (best_ && best_->findings.empty()); }

  void offer(const Plan& plan) {
    if (is_done()) return;
    ++judged_;
    space_.apply(plan, job_);
    std::vector<Finding> findings = check_rules(job_);
    std::erase_if(findings, [](const Finding& f) { return f.severity != Severity::error; });
    if (best_ && best_->findings.size() <= findings.size()) return;
    best_ = {.plan = plan, .findings = std::move(findings)};
  }

  Hindrance found() { return best_ ? std::move(*best_) : Hindrance(); }

 private:
  const PlanSpace& space_;
  Job job_;
  std::optional<Hindrance> best_;
  int judged_ = 0;
};

/// Calls visit(plan) with every word of a role.
template <class Visit>
void each_word(const PlanSpace& space, AxisRole role, Plan plan, std::int16_t Plan::*word,
               Visit visit) {
  for (const std::int16_t w : space.words_of(role, plan.degree(role))) {
    plan.*word = w;
    visit(plan);
  }
}

void offer_states(const PlanSpace& space, Plan plan, LeastHindered& least) {
  for (const std::int16_t state : space.states_of(plan.degrees)) {
    plan.state = state;
    least.offer(plan);
  }
}

void offer_pipelines(const PlanSpace& space, const Plan& plan, LeastHindered& least) {
  each_word(space, AxisRole::layer, plan, &Plan::schedule, [&](Plan staged) {
    // Where blocks cannot be dealt to the stages at all, the rules say so of the even split.
    const bool dealt = !space.splits_of(staged.degree(AxisRole::layer), staged.schedule).empty();
    staged.split = dealt ? std::int16_t{0} : kNoSplit;
    offer_states(space, staged, least);
  });
}

void offer_tensors(const PlanSpace& space, const Plan& plan, LeastHindered& least) {
  each_word(space, AxisRole::tensor, plan, &Plan::tensor,
            [&](const Plan& cut) { offer_pipelines(space, cut, least); });
}

void offer_mesh(const PlanSpace& space, const Degrees& degrees, LeastHindered& least) {
  Plan first;
  first.degrees = degrees;
  const std::vector<std::int64_t> micro = space.micro_batches_of(degrees);
  const std::vector<std::int16_t> orders = space.orders_of(degrees);
  const std::vector<std::int16_t> offloads = space.offloads();
  const auto recomputations = space.recomputations(space.blocks());
  if (orders.empty() || offloads.empty() || recomputations.empty()) return;
  first.micro_batch = micro.empty() ? space.constraints().micro_batch.value_or(1) : micro.front();
  first.order = orders.front();
  first.offload = offloads.front();
  first.recompute = recomputations.front().word;
  first.count = recomputations.front().count;
  each_word(space, AxisRole::sequence, first, &Plan::attention, [&](const Plan& exchanging) {
    each_word(space, AxisRole::expert, exchanging, &Plan::expert,
              [&](const Plan& routed) { offer_tensors(space, routed, least); });
  });
}

}  // namespace

Hindrance least_hindered(const PlanSpace& space) {
  LeastHindered least(space);
  for (const Degrees& degrees : space.meshes()) {
    if (least.is_done()) break;
    offer_mesh(space, degrees, least);
  }
  return least.found();
}

}  // namespace placet
