#include "model/listing.h"

#include <algorithm>
#include <array>
#include <utility>

#include "units/checked.h"

namespace placet {
namespace {

// Of several classes of a tensor, the first of this list names it.
constexpr std::array<TensorClass, kTensorClassCount> kBySpeciality{
    TensorClass::mtp,       TensorClass::adapters,
    TensorClass::experts,   TensorClass::shared_experts,
    TensorClass::router,    TensorClass::norms,
    TensorClass::embedding, TensorClass::head,
    TensorClass::attention, TensorClass::ffn};

std::string main_class(ClassSet classes) {
  for (const TensorClass c : kBySpeciality) {
    if (contains(classes, c)) return std::string(name_of(c));
  }
  return "";
}

TensorEntry entry_of(const Parameter& p, std::int64_t uses) {
  TensorEntry entry{.name = p.name,
                    .dtype = p.dtype,
                    .tensor_class = main_class(p.classes),
                    .trainable = p.trainable,
                    .shared = p.tied.has_value(),
                    .count = uses};
  const auto keeps_apart = [&p](const Dim& dim) {
    const bool per_head = dim.index == Index::head || dim.index == Index::kv_head;
    return (dim.index == Index::expert && p.name.find("{expert}") != std::string::npos) ||
           (per_head && p.name.find("{head}") != std::string::npos);
  };
  for (const Dim& dim : p.dims) {
    if (keeps_apart(dim)) {
      entry.count = checked_multiply(entry.count, dim.size, "tensors");
    } else {
      entry.shape.push_back(dim.size);
    }
  }
  return entry;
}

}  // namespace

std::vector<TensorEntry> list_tensors(const Model& model) {
  std::vector<std::int64_t> uses(model.kinds.size(), 0);
  for (const Unit& unit : model.units) ++uses.at(static_cast<std::size_t>(unit.kind));
  std::vector<TensorEntry> entries;
  for (std::size_t i = 0; i < model.kinds.size(); ++i) {
    if (uses[i] == 0) continue;
    for (const Parameter& p : model.kinds[i].parameters) entries.push_back(entry_of(p, uses[i]));
  }
  return entries;
}

namespace {

/// The module of a tensor: its name up to the last part, or up to its adapter.
std::string module_of(std::string name) {
  const std::size_t adapter = name.find(".lora_");
  const std::size_t end = adapter != std::string::npos ? adapter : name.rfind('.');
  if (end != std::string::npos) name.resize(end);
  for (std::size_t open = name.find('{'); open != std::string::npos; open = name.find('{')) {
    name.replace(open, name.find('}', open) - open + 1, "*");
  }
  return name;
}

}  // namespace

double TrainedPart::share() const {
  return total == 0 ? 0 : static_cast<double>(trained) / static_cast<double>(total);
}

TrainedPart trained_part(const Model& model) {
  const ParameterCounts counts = count_parameters(model);
  TrainedPart out{.trained = counts.trainable, .total = counts.total, .modules = {}};
  for (const TensorEntry& entry : list_tensors(model)) {
    if (!entry.trainable || entry.shared) continue;
    std::string name = module_of(entry.name);
    if (std::ranges::find(out.modules, name) == out.modules.end()) {
      out.modules.push_back(std::move(name));
    }
  }
  return out;
}

namespace {

/// Sum over attention operators of heads x head size: scores take that of queries, the sum of
/// values that of values; their mean counts.
double attention_width(const UnitKind& kind) {
  const auto width_of = [&](int value) {
    std::int64_t width = 1;
    for (const Dim& dim : kind.values.at(static_cast<std::size_t>(value)).dims) {
      const bool counts = dim.index != Index::sample && dim.index != Index::token;
      if (counts) width = checked_multiply(width, dim.size);
    }
    return width;
  };
  double width = 0;
  for (const Operator& op : kind.operators) {
    if (op.kind != OpKind::attention) continue;
    const std::int64_t both = checked_add(width_of(op.inputs.at(0)), width_of(op.outputs.at(0)));
    width += static_cast<double>(both) / 2;
  }
  return width;
}

/// What a token's model FLOPs are products of.
struct Factors {
  double weights = 0;  // that compute
  double trained = 0;  // of these
  double attention = 0;
  bool is_trained = false;  // some tensor is, one that is looked up included

  void add(const Factors& other) {
    weights += other.weights;
    trained += other.trained;
    attention += other.attention;
    is_trained = is_trained || other.is_trained;
  }
};

Factors factors_of(const UnitKind& kind, std::int64_t experts_per_token) {
  if (kind.role == UnitRole::mtp) return {};  // modules that predict further tokens do not count
  Factors out{.attention = attention_width(kind)};
  for (const Parameter& p : kind.parameters) {
    const auto used = static_cast<double>(computing_elements(kind, p, experts_per_token));
    out.weights += used;
    if (p.trainable) out.trained += used;
    out.is_trained = out.is_trained || p.trainable;
  }
  return out;
}

}  // namespace

FlopsPerToken flops_per_token(const Model& model, std::int64_t sequence) {
  std::vector<Factors> kinds;
  kinds.reserve(model.kinds.size());
  for (const UnitKind& kind : model.kinds) {
    kinds.push_back(factors_of(kind, model.figures.experts_per_token));
  }
  Factors all;
  Factors reached;  // of the units that backward goes through
  for (const Unit& unit : model.units) {
    const Factors& own = kinds.at(static_cast<std::size_t>(unit.kind));
    all.add(own);
    if (own.is_trained || reached.is_trained) reached.add(own);
  }
  const auto s = static_cast<double>(sequence);
  const double forward = 2 * all.weights + 4 * s * all.attention;
  const double backward = 2 * reached.weights + 8 * s * reached.attention + 2 * reached.trained;
  return {.forward = flops(forward), .training = flops(forward + backward)};
}

}  // namespace placet
