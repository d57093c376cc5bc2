// The rules one by one, for rules.cc alone. Each adds what it finds to the end of a list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "derive/rules.h"
#include "derive/stages.h"
#include "units/checked.h"

namespace placet {

using Findings = std::vector<Finding>;

// --- rules_of_states.cc: what a placement may say of the four states
void judge_meaning(const Job& job, Findings& findings);
void judge_update(const Job& job, Findings& findings);
void judge_regions(const Job& job, Findings& findings);
void judge_materialized(const Job& job, Findings& findings);
void judge_recompute(const Job& job, Findings& findings);
void judge_effects(const Job& job, Findings& findings);

// --- rules_of_dimensions.cc: what the compute cuts divide of tensors
void judge_dimensions(const Job& job, Findings& findings);
void judge_idle_cuts(const Job& job, Findings& findings);
void judge_storage(const Job& job, Findings& findings);

// --- rules_of_division.cc: of a step
void judge_tokens(const Job& job, Findings& findings);
void judge_recurrences(const Job& job, Findings& findings);
void judge_expert_columns(const Job& job, Findings& findings);
void judge_positions(const Job& job, Findings& findings);
void judge_samples(const Job& job, Findings& findings);

// --- rules_of_blocks.cc: of stages, and by shares
void judge_blocks(const Job& job, Findings& findings);
void judge_shares(const Job& job, Findings& findings);

// --- rules.cc
/// "axis tp", "axis tp, class experts".
std::string place_of(const AxisPlacement& axis);
std::string place_of(const AxisPlacement& axis, const Selector& selector);

/// "tp=8".
std::string with_degree(const AxisPlacement& axis, std::int64_t degree);

/// The degree of the axis at which the degrees multiply to the devices of the cluster, if it is the
/// one to change; 0: it is not, or there is none.
std::int64_t degree_by_product(const Job& job, const AxisPlacement& axis);

/// Into how many equal parts the axis makes a length divide: its degree, or with shares 3,3,2 the
/// 8 parts of which each coordinate takes some.
std::int64_t parts_of(const AxisPlacement& axis);

/// Transformer blocks of the model, prediction modules not counted.
std::int64_t blocks_of(const Model& model);

/// The smallest multiple that is no less than n, saturating.
std::int64_t round_up(std::int64_t n, std::int64_t multiple);

}  // namespace placet
