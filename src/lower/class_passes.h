// What the devices of one stage execute in a step (docs/theory.md §6.4): micro-batches in the order
// of the schedule, then reduction and update. Inside of lower/.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "lower/stages.h"
#include "lower/unit_passes.h"

namespace placet {

/// Units with one set of procedures.
struct UnitSort {
  int kind = 0;
  Again again = Again::nothing;
  bool last_block = false;  // which stays gathered to its backward, where others do not

  auto operator<=>(const UnitSort&) const = default;
};

/// What all classes know of the units.
struct UnitTable {
  std::vector<UnitParameters> parameters;  // by kind
  int last_block = -1;                     // the unit that stays gathered; -1: none does
  UnitParameters of_last_block;            // as that one uses them
  std::map<UnitSort, UnitProcedures> procedures;
  std::map<std::int64_t, std::vector<Again>> again;  // by stage's coordinate, and unit
  /// The stages, by coordinate, that hold a parameter, by the unit that owns it and its plan.
  std::map<std::pair<int, const ParameterPlan*>, std::vector<std::int64_t>> holders;
};

inline const UnitParameters& parameters_of(const UnitTable& table, int unit, int kind) {
  return unit == table.last_block ? table.of_last_block
                                  : table.parameters[static_cast<std::size_t>(kind)];
}

/// Adds the class of one stage to the program.
void write_class(Lowering& in, const UnitTable& table, const std::vector<StagePlan>& stages,
                 const StagePlan& stage);

/// A parameter that a class holds, of unit `unit`.
struct HeldPlan {
  int unit = 0;
  /// The unit whose messages bring it: `unit` where the class hosts it, else the first that uses
  /// it.
  int user = 0;
  const ParameterPlan* plan = nullptr;
};

/// The parameters that a stage holds: those of its units, and those of others that its units share.
std::vector<HeldPlan> plans_held(const Lowering& in, const UnitTable& table,
                                 const StagePlan& stage);

/// Notes in the table who holds what.
void find_holders(const Lowering& in, const std::vector<StagePlan>& stages, UnitTable& table);

/// A buffer of a held parameter.
BufferRef buffer_of(const HeldPlan& held, int family);

/// The second half of a step: gradients to their owners, the norm, the update, and parameters back
/// to where they rest.
void write_update(Lowering& in, const UnitTable& table, const StagePlan& stage);

}  // namespace placet
