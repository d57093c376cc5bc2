#include "model/frozen_parts.h"

#include <map>
#include <utility>

#include "model/adapt.h"
#include "model/gradients.h"
#include "units/at.h"

namespace placet::testing {
namespace {

void freeze(UnitKind& kind) {
  for (Parameter& parameter : kind.parameters) parameter.trainable = false;
}

void freeze_all_of(Model& model, UnitRole role) {
  for (UnitKind& kind : model.kinds) {
    if (kind.role == role) freeze(kind);
  }
}

/// The first blocks become frozen units of kinds of their own.
void freeze_first_blocks(Model& model, std::int64_t blocks) {
  std::map<int, int> early;  // by kind: the frozen one
  for (Unit& unit : model.units) {
    if (model.kinds[at(unit.kind)].role != UnitRole::block || blocks-- <= 0) continue;
    if (!early.contains(unit.kind)) {
      early[unit.kind] = static_cast<int>(model.kinds.size());
      UnitKind kind = model.kinds[at(unit.kind)];
      kind.name = "early " + kind.name;
      freeze(kind);
      model.kinds.push_back(std::move(kind));
    }
    unit.kind = early[unit.kind];
  }
}

void freeze_ties(Model& model) {
  for (UnitKind& kind : model.kinds) {
    for (Parameter& parameter : kind.parameters) {
      if (!parameter.tied) continue;
      const UnitKind& owner = model.kinds[at(parameter.tied->kind)];
      parameter.trainable = owner.parameters[at(parameter.tied->parameter)].trainable;
    }
  }
}

}  // namespace

Model with_frozen_part(Model model, FrozenPart part, std::int64_t blocks) {
  switch (part) {
    case FrozenPart::nothing:
      break;
    case FrozenPart::embedding:
      freeze_all_of(model, UnitRole::embedding);
      break;
    case FrozenPart::lower_blocks:
      freeze_all_of(model, UnitRole::embedding);
      freeze_first_blocks(model, blocks);
      break;
    case FrozenPart::below_head:
      freeze_all_of(model, UnitRole::embedding);
      freeze_all_of(model, UnitRole::block);
      break;
    case FrozenPart::all_but_adapters:
      model = with_lora(std::move(model), {.rank = 4});
      break;
  }
  if (part != FrozenPart::all_but_adapters) freeze_ties(model);
  return with_gradients_needed(std::move(model));
}

}  // namespace placet::testing
