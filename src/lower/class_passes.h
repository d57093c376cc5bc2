// What the devices of one stage execute in a step (docs/theory.md §6.5): micro-batches in the order
// of the schedule, then reduction and update. Inside of lower/.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "lower/stages.h"
#include "lower/unit_passes.h"

namespace placet {

/// Parameters by kind, procedures by kind and whether recomputed.
struct UnitTable {
  std::vector<UnitParameters> parameters;
  std::map<std::pair<int, bool>, UnitProcedures> procedures;
  std::vector<bool> recomputed;  // by unit
};

/// Adds the class of one stage to the program.
void write_class(Lowering& in, const UnitTable& table, const std::vector<StagePlan>& stages,
                 const StagePlan& stage);

/// A parameter that a class holds, of unit `unit`.
struct HeldPlan {
  int unit = 0;
  int user = 0;  // the first unit of the class that uses it: its messages are that unit's
  const ParameterPlan* plan = nullptr;
};

/// The parameters that a stage holds: those of its units, and those of others that its units share.
std::vector<HeldPlan> plans_held(const Lowering& in, const UnitTable& table,
                                 const StagePlan& stage);

/// A buffer of a held parameter.
BufferRef buffer_of(const HeldPlan& held, int family);

/// The second half of a step: gradients to their owners, the norm, the update, and parameters back
/// to where they rest.
void write_update(Lowering& in, const UnitTable& table, const std::vector<StagePlan>& stages,
                  const StagePlan& stage);

}  // namespace placet
