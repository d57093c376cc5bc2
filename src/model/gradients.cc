#include "model/gradients.h"

#include <algorithm>
#include <utility>

#include "units/at.h"

namespace placet {

bool trains(const UnitKind& kind) {
  return std::ranges::any_of(kind.parameters, [](const Parameter& p) { return p.trainable; });
}

namespace {

bool is_number(const Value& value) {
  return value.type != ValueType::int64 && value.type != ValueType::mask;
}

/// By unit: whether something before it on the stream is trained.
std::vector<bool> reached_units(const Model& model) {
  std::vector<bool> reached;
  bool trained = false;
  for (const Unit& unit : model.units) {
    const UnitKind& kind = model.kinds[at(unit.kind)];
    reached.push_back(trained);
    trained = trained || (kind.role != UnitRole::head && trains(kind));
  }
  return reached;
}

/// Whether output `o` of the operator depends on input `i`: rotations and biases work on several
/// values side by side, the first for itself.
bool depends(const Operator& op, std::size_t o, std::size_t i) {
  const bool side_by_side = op.kind == OpKind::rotary || op.kind == OpKind::bias;
  return !side_by_side || (o == 0) == (i == 0);
}

/// Whether something that output `o` of the operator is made of has a gradient.
bool is_reached(const UnitKind& kind, const Operator& op, std::size_t o,
                const std::vector<bool>& has_gradient) {
  if (trains(kind, op)) return true;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (has_gradient[at(op.inputs[i])] && depends(op, o, i)) return true;
  }
  return false;
}

std::vector<bool> values_with_gradient(const UnitKind& kind, bool stream) {
  std::vector<bool> out(kind.values.size(), false);
  if (!out.empty()) out[0] = stream && is_number(kind.values[0]);
  for (const Operator& op : kind.operators) {
    for (std::size_t o = 0; o < op.outputs.size(); ++o) {
      const int v = op.outputs[o];
      out[at(v)] = is_number(kind.values[at(v)]) && is_reached(kind, op, o, out);
    }
  }
  return out;
}

/// Whether some units of a kind stand where the answer is `reached`.
bool some_stand(const Model& model, int kind, const std::vector<bool>& all, bool reached) {
  for (std::size_t u = 0; u < model.units.size(); ++u) {
    if (model.units[u].kind == kind && all[u] == reached) return true;
  }
  return false;
}

/// Units of a kind that nothing trained stands before become units of a kind of their own.
void part_kind(Model& model, int kind, const std::vector<bool>& reached) {
  UnitKind early = model.kinds[at(kind)];
  early.name = (trains(early) ? "first trained " : "frozen ") + early.name;
  for (std::size_t u = 0; u < model.units.size(); ++u) {
    const bool moves = model.units[u].kind == kind && !reached[u];
    if (moves) model.units[u].kind = static_cast<int>(model.kinds.size());
  }
  model.kinds.push_back(std::move(early));
}

}  // namespace

bool trains(const UnitKind& kind, const Operator& op) {
  return std::ranges::any_of(op.parameters,
                             [&](int p) { return kind.parameters[at(p)].trainable; });
}

bool is_frozen(const UnitKind& kind, const Operator& op) {
  return !op.parameters.empty() && !trains(kind, op);
}

std::vector<KindGradients> gradients_of(const Model& model) {
  const std::vector<bool> reached = reached_units(model);
  std::vector<KindGradients> out(model.kinds.size());
  for (KindGradients& kind : out) kind.stream = false;
  for (std::size_t u = 0; u < model.units.size(); ++u) {
    const bool takes_stream = model.kinds[at(model.units[u].kind)].role != UnitRole::embedding;
    if (reached[u] && takes_stream) out[at(model.units[u].kind)].stream = true;
  }
  for (std::size_t k = 0; k < out.size(); ++k) {
    out[k].backward = out[k].stream || trains(model.kinds[k]);
    out[k].values = values_with_gradient(model.kinds[k], out[k].stream);
  }
  return out;
}

Model with_gradients_needed(Model model) {
  const std::vector<bool> reached = reached_units(model);
  const int kinds = static_cast<int>(model.kinds.size());
  for (int k = 0; k < kinds; ++k) {
    const bool both = some_stand(model, k, reached, false) && some_stand(model, k, reached, true);
    // Nothing is known of the stream where only a count of parameters is given.
    if (both && !model.kinds[at(k)].operators.empty()) part_kind(model, k, reached);
  }
  return model;
}

}  // namespace placet
