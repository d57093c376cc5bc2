// How far backward goes: where all that comes before a unit is frozen, nobody asks for the gradient
// of what enters it (docs/theory.md §3.2).
#pragma once

#include <vector>

#include "model/model.h"

namespace placet {

/// Whether some parameter of the unit, or of the operator, is trained.
bool trains(const UnitKind& kind);
bool trains(const UnitKind& kind, const Operator& op);

/// Whether the operator has parameters and none of them is trained.
bool is_frozen(const UnitKind& kind, const Operator& op);

/// How far backward goes in the units of one kind.
struct KindGradients {
  bool stream = true;        // the unit before is asked for, so that value 0 has a gradient
  bool backward = true;      // backward has work in the unit: it trains something or passes it on
  std::vector<bool> values;  // by value: backward makes its gradient
};

/// By kind. The stream into a unit has a gradient if something before the unit is trained; a result
/// has one if something trained, or with a gradient, goes into it and it is a number. Of a kind
/// with units on both sides the later ones count (with_gradients_needed parts them). Case: LoRA on
/// the query of the first trained block: neither its norm nor its keys have one.
std::vector<KindGradients> gradients_of(const Model& model);

/// The model with kinds of its own for units up to the first that trains something, where others of
/// their kind come after it: "frozen NAME", or "first trained NAME". A prediction module takes the
/// stream of the blocks, not of the head.
Model with_gradients_needed(Model model);

}  // namespace placet
