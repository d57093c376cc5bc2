#include "model/listing.h"

#include <array>

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

FlopsPerToken flops_per_token(const Model& model, std::int64_t sequence) {
  const double parameters = static_cast<double>(count_parameters(model).active_without_embedding);
  const double attention =
      static_cast<double>(model.figures.attention_width) * static_cast<double>(sequence);
  return {.forward = flops(2 * parameters + 4 * attention),
          .training = flops(6 * parameters + 12 * attention)};
}

}  // namespace placet
