// What --fix and --require ask of a plan.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "placement/strategy.h"
#include "search/plan_space.h"

namespace placet {

/// `fix`: NAME=DEGREE or NAME=DEGREE:TERMS of axes, "tp=8 pp=4:1f1b", the terms in any spelling.
/// `require`: terms that must occur in the placement, or with "no-" in front must not,
/// "sp,no-offload". Throws InputError.
PlanConstraints read_constraints(const Choices& choices, const Vocabulary& vocabulary,
                                 const std::string& fix, const std::string& require);

/// Parts of a text between separators, which inside of brackets separate nothing.
std::vector<std::string> split_outside_brackets(const std::string& text,
                                                std::string_view separators);

/// What a text may be of those that a role knows: its words, or the words of its states.
std::vector<std::string> texts_of(const Choices& choices, AxisRole role);

/// The terms as a placement prints them, "zero1" of "batch(R,S,R,R)"; as they are where they are
/// none.
std::string canonical_terms(const std::string& terms, const Vocabulary& vocabulary);

/// What a role's axis is called: "tp".
std::string axis_name(const Choices& choices, AxisRole role);

}  // namespace placet
