#include "model/model.h"

#include <algorithm>
#include <array>
#include <utility>

#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::array<std::string_view, kOpKindCount> kOpKindNames{
    "embedding",    "position",  "linear",     "grouped_linear",   "bias",        "norm",
    "rotary",       "attention", "activation", "gated_activation", "multiply",    "dropout",
    "residual_add", "router",    "dispatch",   "combine",          "convolution", "scan",
    "loss"};

constexpr std::array<std::string_view, kTensorClassCount> kClassNames{
    "experts", "shared-experts", "router", "attention", "ffn",
    "norms",   "embedding",      "head",   "adapters",  "mtp"};

constexpr std::array<std::string_view, kModuleCount> kModuleNames{"embedding",
                                                                  "norm",
                                                                  "attention",
                                                                  "core_attention",
                                                                  "mlp",
                                                                  "mlp_activation",
                                                                  "moe",
                                                                  "shared_expert",
                                                                  "residual",
                                                                  "head",
                                                                  "loss",
                                                                  "moe_activation",
                                                                  "latent_projection"};

ParameterCounts operator+(const ParameterCounts& a, const ParameterCounts& b) {
  return {.total = checked_add(a.total, b.total, "parameters"),
          .active = checked_add(a.active, b.active, "parameters"),
          .trainable = checked_add(a.trainable, b.trainable, "parameters"),
          .active_without_embedding =
              checked_add(a.active_without_embedding, b.active_without_embedding, "parameters"),
          .prediction = checked_add(a.prediction, b.prediction, "parameters")};
}

IndexSet indices_of(const std::vector<Dim>& dims) {
  IndexSet set = 0;
  for (const Dim& dim : dims) set |= bit_of(dim.index);
  return set;
}

/// Of a stack of experts, those that one token visits; otherwise everything.
std::int64_t active_elements(const Parameter& p, std::int64_t elements, std::int64_t per_token) {
  if (!contains(p.classes, TensorClass::experts)) return elements;
  for (const Dim& dim : p.dims) {
    if (dim.index == Index::expert) return elements / dim.size * per_token;
  }
  return elements;
}

/// An embedding is looked up; where it is also the output matrix, that use counts (in the head).
bool is_looked_up(const UnitKind& kind, const Parameter& p) {
  const IndexSet rows = bit_of(Index::vocab) | bit_of(Index::position);
  return kind.role == UnitRole::embedding && (indices_of(p.dims) & rows) != 0;
}

ParameterCounts count_parameter(const UnitKind& kind, const Parameter& p,
                                std::int64_t experts_per_token) {
  const std::int64_t elements = elements_of(p.dims);
  const std::int64_t owned = p.tied ? 0 : elements;
  if (kind.role == UnitRole::mtp) {
    return {.total = owned, .trainable = p.trainable ? owned : 0, .prediction = owned};
  }
  const std::int64_t used = active_elements(p, elements, experts_per_token);
  return {.total = owned,
          .active = p.tied ? 0 : used,
          .trainable = p.trainable ? owned : 0,
          .active_without_embedding = computing_elements(kind, p, experts_per_token)};
}

ParameterCounts count_kind(const UnitKind& kind, std::int64_t experts_per_token) {
  ParameterCounts counts;
  for (const Parameter& p : kind.parameters) {
    counts = counts + count_parameter(kind, p, experts_per_token);
  }
  return counts;
}

ParameterCounts times(const ParameterCounts& a, std::int64_t n) {
  const auto scaled = [n](std::int64_t x) { return checked_multiply(x, n, "parameters"); };
  return {.total = scaled(a.total),
          .active = scaled(a.active),
          .trainable = scaled(a.trainable),
          .active_without_embedding = scaled(a.active_without_embedding),
          .prediction = scaled(a.prediction)};
}

template <class Container>
void ensure_positions(const std::vector<int>& positions, const Container& in) {
  for (const int p : positions) {
    ensure(p >= 0 && static_cast<std::size_t>(p) < in.size(), "a position is inside its list");
  }
}

void validate_dims(const std::vector<Dim>& dims) {
  for (const Dim& dim : dims) {
    ensure(dim.size >= 0 && dim.parts >= 1, "a dim has a size and at least one part");
    ensure(dim.size % dim.parts == 0, "a dim's size is a multiple of its parts");
  }
}

void validate_segments(const Parameter& p) {
  validate_dims(p.segments);
  if (p.segments.empty()) return;
  std::int64_t size = 0;
  for (const Dim& segment : p.segments) size = checked_add(size, segment.size, "segments");
  ensure(size == p.dims.at(static_cast<std::size_t>(segmented_dim(p))).size,
         "segments add up to the dim they make up");
}

void validate_operators(const UnitKind& kind) {
  std::vector<bool> made(kind.values.size(), false);
  const auto make = [&made](int value) {
    auto known = made.begin() + value;
    ensure(!*known, "a value is produced once");
    *known = true;
  };
  for (const Operator& op : kind.operators) {
    ensure_positions(op.inputs, kind.values);
    ensure_positions(op.outputs, kind.values);
    ensure_positions(op.internals, kind.values);
    ensure_positions(op.parameters, kind.parameters);
    for (const int value : op.outputs) make(value);
    for (const int value : op.internals) make(value);
  }
}

void validate_tie(const Model& model, int kind, const Parameter& p) {
  if (!p.tied) return;
  ensure(p.tied->kind >= 0 && static_cast<std::size_t>(p.tied->kind) < model.kinds.size() &&
             p.tied->kind != kind,
         "a tie names another kind");
  const auto& owner = model.kinds[static_cast<std::size_t>(p.tied->kind)].parameters;
  ensure(p.tied->parameter >= 0 && static_cast<std::size_t>(p.tied->parameter) < owner.size(),
         "a tie names a parameter");
  const Parameter& shared = owner[static_cast<std::size_t>(p.tied->parameter)];
  ensure(!shared.tied, "the owner of a shared tensor is not itself a second use");
  ensure(elements_of(shared.dims) == elements_of(p.dims), "both uses of a tensor have its size");
}

}  // namespace

std::string_view name_of(Recurrence recurrence) {
  switch (recurrence) {
    case Recurrence::selective_scan:
      return "selective_scan";
    case Recurrence::head_scan:
      return "head_scan";
    case Recurrence::delta_rule:
      return "delta_rule";
    case Recurrence::channel_delta_rule:
      return "channel_delta_rule";
    case Recurrence::linear_attention:
      return "linear_attention";
    case Recurrence::input_gate:
      return "input_gate";
  }
  fail_internally("every recurrence has a name");
}

std::string_view name_of(Nonlinearity nonlinearity) {
  switch (nonlinearity) {
    case Nonlinearity::act:
      return "act";
    case Nonlinearity::silu:
      return "silu";
    case Nonlinearity::sigmoid:
      return "sigmoid";
    case Nonlinearity::none:
      return "entry";
  }
  fail_internally("every nonlinearity has a name");
}

std::string_view name_of(TensorClass c) { return kClassNames.at(static_cast<std::size_t>(c)); }
std::string_view name_of(OpKind kind) { return kOpKindNames.at(static_cast<std::size_t>(kind)); }
std::string_view name_of(Module module) {
  return kModuleNames.at(static_cast<std::size_t>(module));
}

std::optional<OpKind> op_kind_named(std::string_view name) {
  for (std::size_t i = 0; i < kOpKindNames.size(); ++i) {
    if (kOpKindNames.at(i) == name) return static_cast<OpKind>(i);
  }
  return std::nullopt;
}

int segmented_dim(const Parameter& parameter) {
  if (parameter.segments.empty()) return -1;
  const auto heads = std::ranges::find_if(parameter.dims, [](const Dim& dim) {
    return dim.index == Index::head || dim.index == Index::kv_head;
  });
  ensure(heads != parameter.dims.end(), "segments make up a dim of heads");
  return static_cast<int>(heads - parameter.dims.begin());
}

std::int64_t elements_of(const std::vector<Dim>& dims) {
  std::int64_t product = 1;
  for (const Dim& dim : dims) product = checked_multiply(product, dim.size, "elements");
  return product;
}

std::int64_t computing_elements(const UnitKind& kind, const Parameter& p,
                                std::int64_t experts_per_token) {
  return is_looked_up(kind, p) ? 0 : active_elements(p, elements_of(p.dims), experts_per_token);
}

ParameterCounts count_parameters(const Model& model) {
  std::vector<std::int64_t> uses(model.kinds.size(), 0);
  for (const Unit& unit : model.units) ++uses.at(static_cast<std::size_t>(unit.kind));
  ParameterCounts counts;
  for (std::size_t i = 0; i < model.kinds.size(); ++i) {
    const ParameterCounts one = count_kind(model.kinds[i], model.figures.experts_per_token);
    counts = counts + times(one, uses[i]);
  }
  return counts;
}

IndexSet indices_of(const Parameter& parameter) {
  return indices_of(parameter.dims) | indices_of(parameter.segments);
}

IndexSet indices_of(const UnitKind& kind, const Operator& op) {
  IndexSet set = 0;
  for (const int v : op.inputs) set |= indices_of(kind.values.at(static_cast<std::size_t>(v)).dims);
  for (const int v : op.outputs)
    set |= indices_of(kind.values.at(static_cast<std::size_t>(v)).dims);
  for (const int p : op.parameters) {
    set |= indices_of(kind.parameters.at(static_cast<std::size_t>(p)));
  }
  return set;
}

IndexSet summed_indices(const UnitKind& kind, int p) {
  IndexSet used = 0;
  for (const Operator& op : kind.operators) {
    for (const int parameter : op.parameters) {
      if (parameter == p) used |= indices_of(kind, op);
    }
  }
  return used & ~indices_of(kind.parameters.at(static_cast<std::size_t>(p)));
}

void validate(const Model& model) {
  for (std::size_t i = 0; i < model.kinds.size(); ++i) {
    const UnitKind& kind = model.kinds[i];
    for (const Parameter& p : kind.parameters) {
      validate_dims(p.dims);
      validate_segments(p);
      validate_tie(model, static_cast<int>(i), p);
    }
    for (const Value& value : kind.values) validate_dims(value.dims);
    validate_operators(kind);
  }
  for (const Unit& unit : model.units) {
    ensure(unit.kind >= 0 && static_cast<std::size_t>(unit.kind) < model.kinds.size(),
           "a unit's kind exists");
  }
}

bool is_bare(const Model& model) {
  return std::ranges::all_of(model.kinds, [](const UnitKind& kind) {
    return kind.operators.empty() && std::ranges::all_of(kind.parameters, [](const Parameter& p) {
             return p.dims.size() == 1 && p.dims.front().index == Index::other;
           });
  });
}

}  // namespace placet
