// What --fix and --require ask of a plan.
#pragma once

#include <string>

#include "placement/strategy.h"
#include "search/plan_space.h"

namespace placet {

/// `fix`: NAME=DEGREE or NAME=DEGREE:TERMS of axes, "tp=8 pp=4:1f1b", the terms in any spelling.
/// `require`: terms that must occur in the placement, or with "no-" in front must not,
/// "sp,no-offload". Throws InputError.
PlanConstraints read_constraints(const Choices& choices, const Vocabulary& vocabulary,
                                 const std::string& fix, const std::string& require);

/// What a role's axis is called: "tp".
std::string axis_name(const Choices& choices, AxisRole role);

}  // namespace placet
