// Constraints that no plan can keep, whatever it costs. They are wrong input: a search would judge
// nothing. That plans are there and none of them fits or keeps the rules is a judgement instead.
#pragma once

#include <memory>
#include <string>

#include "search/plan_costs.h"
#include "search/plan_space.h"

namespace placet {

/// Throws InputError where the constraints of a space contradict each other, the devices, the batch
/// or the model: it names the degrees or the term, and why nothing is left. `said`: all of them as
/// they were asked for, "--fix tp=8 --require sp". `costs`: of the space.
///   --fix "tp=16 dp=16" on 64 devices    takes 256 devices
///   --require ep of a dense model        the model has no experts
void check_constraints(const PlanSpace& space, const std::shared_ptr<PlanCosts>& costs,
                       const std::string& said);

}  // namespace placet
