#include "model/adapt.h"

#include <algorithm>
#include <set>
#include <utility>

#include "model/unit_builder.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

/// Whether a pattern is of a tensor's whole name, of one part of it, or of the end of its module's
/// name. Case: of model.layers.0.self_attn.q_proj.weight: q_proj, and self_attn.q_proj.
bool matches_a_part(std::string_view pattern, std::string_view name) {
  if (matches_pattern(pattern, name)) return true;
  while (!name.empty()) {
    const std::size_t dot = name.find('.');
    const std::string_view module = name.substr(0, name.rfind('.'));
    if (matches_pattern(pattern, name.substr(0, dot)) || matches_pattern(pattern, module)) {
      return true;
    }
    if (dot == std::string_view::npos) break;
    name.remove_prefix(dot + 1);
  }
  return false;
}

bool is_linear(const Operator& op) {
  return op.kind == OpKind::linear || op.kind == OpKind::grouped_linear;
}

/// Patterns, and which of them have matched something.
class Patterns {
 public:
  Patterns(std::span<const std::string> patterns, std::string where)
      : patterns_(patterns.begin(), patterns.end()),
        matched_(patterns.size(), false),
        where_(std::move(where)) {}

  bool matches(const UnitKind& kind, int p) {
    const std::string& name = kind.parameters.at(static_cast<std::size_t>(p)).name;
    offer(name);
    bool any = false;
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      if (!matches_a_part(patterns_[i], name) && !matches_user(patterns_[i], kind, p)) continue;
      matched_[i] = true;
      any = true;
    }
    return any;
  }

  /// Throws for the first pattern that has matched nothing.
  void finish() const {
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      if (matched_[i]) continue;
      std::vector<std::string> words(offered_.begin(), offered_.end());
      if (where_ == "lora") words.emplace_back("all-linear");
      throw InputError({.where = where_,
                        .value = patterns_[i],
                        .problem = "matches no tensor it could apply to",
                        .allowed = "a checkpoint name or a part of one, with * and ?",
                        .nearest = nearest(patterns_[i], words)});
    }
  }

 private:
  static bool matches_user(std::string_view pattern, const UnitKind& kind, int p) {
    return std::ranges::any_of(kind.operators, [&](const Operator& op) {
      return std::ranges::find(op.parameters, p) != op.parameters.end() &&
             matches_pattern(pattern, op.name);
    });
  }

  void offer(std::string_view name) {
    while (true) {
      const std::size_t dot = name.find('.');
      offered_.insert(std::string(name.substr(0, dot)));
      if (dot == std::string_view::npos) return;
      name.remove_prefix(dot + 1);
    }
  }

  std::vector<std::string> patterns_;
  std::vector<bool> matched_;
  std::string where_;
  std::set<std::string> offered_;
};

std::string adapter_name(const std::string& base, std::string_view which) {
  constexpr std::string_view kEnd = ".weight";
  const bool ends = base.ends_with(kEnd);
  const std::string stem = ends ? base.substr(0, base.size() - kEnd.size()) : base;
  return stem + ".lora_" + std::string(which) + (ends ? ".weight" : "");
}

/// The dims of a weight, told apart by the operator that uses it: experts, rows (of the results),
/// columns (of the input).
struct Sides {
  std::vector<Dim> experts;
  Dim out;
  Dim in;
  std::vector<Dim> segments = {};  // of the rows
};

Sides sides_of(const UnitKind& kind, const Operator& op, const Parameter& weight) {
  const Dim in = kind.values.at(static_cast<std::size_t>(op.inputs.front())).dims.back();
  Sides sides;
  std::vector<Dim> rest = weight.dims;
  if (op.kind == OpKind::grouped_linear) {
    sides.experts = {rest.front()};
    rest.erase(rest.begin());
  }
  ensure(rest.size() == 2, "a linear operator's weight has two sides");
  // Square weights may have equal dims on both sides; the order then does not matter.
  const bool in_last = rest[1].index == in.index && rest[1].size >= in.size;
  sides.out = in_last ? rest[0] : rest[1];
  sides.in = in_last ? rest[1] : rest[0];
  sides.segments = weight.segments;
  return sides;
}

int add_value(UnitKind& kind, std::string name, std::vector<Dim> dims, Region region) {
  kind.values.push_back({.name = std::move(name), .dims = std::move(dims), .region = region});
  return static_cast<int>(kind.values.size()) - 1;
}

/// Adds a factor of the change to `base`, from its name, dims and segments.
int add_adapter(UnitKind& kind, const Parameter& base, const Sides& sides, Parameter factor) {
  factor.dims.insert(factor.dims.begin(), sides.experts.begin(), sides.experts.end());
  factor.classes = static_cast<ClassSet>(base.classes | bit_of(TensorClass::adapters));
  kind.parameters.push_back(std::move(factor));
  return static_cast<int>(kind.parameters.size()) - 1;
}

/// What an adapter takes: the operator's input, or that with some entries set to zero, by a mask of
/// the adapter's own.
Operator dropout_before(UnitKind& kind, const Operator& op) {
  const int input = op.inputs.front();
  const Value value = kind.values.at(static_cast<std::size_t>(input));
  const std::string name = op.name + ".lora_dropout";
  const int output = add_value(kind, name, value.dims, value.region);
  const int mask = add_value(kind, name + ".dropout_mask", value.dims, value.region);
  kind.values.back().type = ValueType::mask;
  return {.kind = OpKind::dropout,
          .name = name,
          .region = value.region,
          .module = op.module,
          .inputs = {input},
          .outputs = {output},
          .internals = {mask}};
}

/// The operators that replace `op`: itself with new outputs, dropout where there is any, A, B, and
/// a sum per output, which makes the values that `op` made before.
std::vector<Operator> adapt(UnitKind& kind, Operator op, const Adapters& adapters) {
  const std::int64_t rank = adapters.rank;
  const Parameter base = kind.parameters.at(static_cast<std::size_t>(op.parameters.front()));
  const Sides sides = sides_of(kind, op, base);
  if (rank >= std::min(sides.in.size, sides.out.size)) {
    throw InputError(
        {.where = "lora",
         .value = std::to_string(rank),
         .problem = "is not a low rank for " + base.name,
         .allowed = "1 to " + std::to_string(std::min(sides.in.size, sides.out.size) - 1)});
  }
  const Dim low = dim(Index::adapter, rank);
  const int a = add_adapter(kind, base, sides,
                            {.name = adapter_name(base.name, "A"), .dims = {low, sides.in}});
  const int b = add_adapter(
      kind, base, sides,
      {.name = adapter_name(base.name, "B"), .dims = {sides.out, low}, .segments = sides.segments});
  std::vector<Dim> narrow = kind.values.at(static_cast<std::size_t>(op.inputs.front())).dims;
  narrow.back() = low;
  const int reduced = add_value(kind, op.name + ".lora_a", narrow, op.region);
  Operator first = op;
  first.name += ".lora_a";
  first.outputs = {reduced};
  first.parameters = {a};
  Operator second = op;
  second.name += ".lora_b";
  second.inputs = {reduced};
  second.outputs.clear();
  second.parameters = {b};
  std::vector<Operator> sums;
  for (int& output : op.outputs) {
    const Value value = kind.values.at(static_cast<std::size_t>(output));
    const int plain = add_value(kind, value.name + ".base", value.dims, op.region);
    const int change = add_value(kind, value.name + ".change", value.dims, op.region);
    second.outputs.push_back(change);
    sums.push_back({.kind = OpKind::residual_add,
                    .name = op.name + ".lora_add",
                    .region = op.region,
                    .module = op.module,
                    .inputs = {plain, change},
                    .outputs = {output}});
    output = plain;
  }
  std::vector<Operator> result{op};
  if (adapters.drops) {
    result.push_back(dropout_before(kind, op));
    first.inputs = {result.back().outputs.front()};
  }
  result.push_back(std::move(first));
  result.push_back(std::move(second));
  std::ranges::move(sums, std::back_inserter(result));
  return result;
}

bool takes_adapter(const UnitKind& kind, const Operator& op) {
  if (!is_linear(op)) return false;
  const Parameter& weight = kind.parameters.at(static_cast<std::size_t>(op.parameters.front()));
  return !weight.tied && !contains(weight.classes, TensorClass::router);
}

/// Freezes a kind and adapts its operators that match; whether there was one.
bool adapt_kind(UnitKind& kind, const Adapters& adapters, Patterns& matcher) {
  for (Parameter& p : kind.parameters) p.trainable = false;
  std::vector<Operator> operators;
  for (const Operator& op : kind.operators) {
    const bool chosen =
        adapters.all_linear
            ? op.kind == OpKind::linear && kind.role != UnitRole::head && takes_adapter(kind, op)
            : takes_adapter(kind, op) && matcher.matches(kind, op.parameters.front());
    if (chosen) {
      std::ranges::move(adapt(kind, op, adapters), std::back_inserter(operators));
    } else {
      operators.push_back(op);
    }
  }
  const bool adapted = operators.size() > kind.operators.size();
  kind.operators = std::move(operators);
  return adapted;
}

void freeze_ties(Model& model) {
  const auto at = [&model](Parameter::Tie tie) -> Parameter& {
    return model.kinds.at(static_cast<std::size_t>(tie.kind))
        .parameters.at(static_cast<std::size_t>(tie.parameter));
  };
  for (UnitKind& kind : model.kinds) {
    for (Parameter& p : kind.parameters) {
      if (p.tied && !p.trainable) at(*p.tied).trainable = false;
    }
  }
  for (UnitKind& kind : model.kinds) {
    for (Parameter& p : kind.parameters) {
      if (p.tied) p.trainable = at(*p.tied).trainable;
    }
  }
}

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) {
  // Greedy with one point to return to: the last star and where it stopped taking.
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Model with_frozen(Model model, std::span<const std::string> patterns) {
  Patterns matcher(patterns, "freeze");
  for (UnitKind& kind : model.kinds) {
    for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
      if (matcher.matches(kind, static_cast<int>(p))) kind.parameters[p].trainable = false;
    }
  }
  matcher.finish();
  freeze_ties(model);
  return model;
}

Model with_lora(Model model, const Adapters& adapters) {
  if (adapters.rank < 1) {
    throw InputError({.where = "lora",
                      .value = std::to_string(adapters.rank),
                      .problem = "is not a rank",
                      .allowed = "a whole number from 1"});
  }
  const std::vector<std::string> usual{"attention.q", "attention.v", "attention.qkv"};
  const bool by_default = adapters.patterns.empty();
  Patterns matcher(by_default ? usual : adapters.patterns, "lora");
  bool any = false;
  for (UnitKind& kind : model.kinds) any = adapt_kind(kind, adapters, matcher) || any;
  if (!by_default) matcher.finish();
  if (!any) {
    throw InputError({.where = "lora",
                      .problem = "finds no linear operator in this model",
                      .allowed = "a model with attention projections, or patterns"});
  }
  return model;
}

Model with_frozen_format(Model model, Dtype dtype) {
  for (UnitKind& kind : model.kinds) {
    if (kind.role != UnitRole::block) continue;
    for (const Operator& op : kind.operators) {
      if (!takes_adapter(kind, op)) continue;
      Parameter& weight = kind.parameters.at(static_cast<std::size_t>(op.parameters.front()));
      if (!weight.trainable) weight.dtype = dtype;
    }
  }
  return model;
}

}  // namespace placet
