// What plans take, put together from tables of their parts (docs/theory.md §9.3): for many plans at
// once, none laid out by itself. Never more than derive and derive_time say of the plan.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "search/plan_costs.h"
#include "search/plan_space.h"

namespace placet {

/// At least.
struct PlanEstimate {
  double step = 0;         // seconds
  std::int64_t bytes = 0;  // alive on the fullest device
  std::int64_t sent = 0;   // bytes of a step, by the busiest device
};

class PlanEstimates {
 public:
  /// Both must outlive it.
  PlanEstimates(const PlanSpace& space, PlanCosts& costs) : space_(space), costs_(costs) {}

  using Visit = std::function<void(const Plan& plan, const PlanEstimate& estimate)>;

  /// Every plan of a mesh that has a schedule and states that the engine knows, other rules not
  /// asked. May be called for several meshes at once.
  void each(const Degrees& mesh, const Visit& visit) const;

 private:
  void each_tensor_cut(Plan plan, const Visit& visit) const;
  void each_work(Plan plan, const Visit& visit) const;

  const PlanSpace& space_;
  PlanCosts& costs_;
};

}  // namespace placet
