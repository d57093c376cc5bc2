// Conditions and amounts of an engine profile, evaluated on one device class.
#include <algorithm>
#include <optional>

#include "derive/memory.h"
#include "derive/stage_units.h"
#include "profile/conditions.h"
#include "units/at.h"
#include "units/shares.h"

namespace placet {
namespace {

/// Calls visit for every parameter that the stage holds, tied ones once.
template <class Visit>
void for_each_parameter(const Layout& layout, const Stage& stage, Visit visit) {
  for_each_unit(stage, [&](int u) {
    const LocalUnit& unit = layout.units[at(layout.unit_of[at(u)])];
    const UnitKind& kind = layout.job->model.kinds[at(unit.kind)];
    for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
      if (!is_second_use(layout.job->model, stage, kind.parameters[p])) visit(unit.parameters[p]);
    }
  });
}

std::int64_t largest_unit(const Layout& layout, const Stage& stage) {
  std::int64_t largest = 0;
  for_each_unit(stage, [&](int u) {
    std::int64_t sum = 0;
    for (const LocalParameter& p : layout.units[at(layout.unit_of[at(u)])].parameters) {
      sum += p.elements;
    }
    largest = std::max(largest, sum);
  });
  return largest;
}

std::int64_t hosted_blocks(const Layout& layout, const Stage& stage) {
  const Model& model = layout.job->model;
  std::int64_t blocks = 0;
  for_each_unit(stage, [&](int u) {
    blocks += model.kinds[at(model.units[at(u)].kind)].role == UnitRole::block ? 1 : 0;
  });
  return blocks;
}

std::int64_t padded_local_vocabulary(const Layout& layout) {
  const Profile& profile = layout.job->profile;
  const std::int64_t multiple =
      profile.vocabulary_multiple *
      (profile.vocabulary_multiple_times_tensor_degree ? layout.tensor_degree : 1);
  const std::int64_t whole =
      (layout.job->model.figures.vocabulary + multiple - 1) / multiple * multiple;
  return (whole + layout.tensor_degree - 1) / layout.tensor_degree;
}

/// Whether tokens choose experts in units of the kind.
bool routes_tokens(const UnitKind& kind) {
  return std::ranges::any_of(kind.operators,
                             [](const Operator& op) { return op.kind == OpKind::dispatch; });
}

std::int64_t hosted_moe_blocks(const Layout& layout, const Stage& stage) {
  const Model& model = layout.job->model;
  std::int64_t blocks = 0;
  for_each_unit(stage, [&](int u) {
    blocks += routes_tokens(model.kinds[at(model.units[at(u)].kind)]) ? 1 : 0;
  });
  return blocks;
}

/// How often the hosted blocks with routed experts send tokens to them in one micro-batch.
std::int64_t moe_passes(const Layout& layout, const Stage& stage) {
  std::int64_t passes = 0;
  for (const UnitRun& run : units_of(layout, stage).runs) {
    const int kind = layout.units[at(run.local)].kind;
    const auto& operators = layout.job->model.kinds[at(kind)].operators;
    const auto sends = std::ranges::find(operators, OpKind::dispatch, &Operator::kind);
    if (sends == operators.end()) continue;
    const std::vector<Module>& again = layout.prepared->kinds[at(kind)].recomputed.modules;
    const bool twice = run.recomputed && std::ranges::find(again, sends->module) != again.end();
    passes += run.count * (twice ? 2 : 1);
  }
  return passes;
}

std::int64_t experts_hosted(const Layout& layout) {
  const std::int64_t degree = *value_in_job(Symbol::expert_degree, *layout.job);
  return largest_share(layout.job->model.figures.experts, degree);
}

/// Symbols that add up or compare what a stage trains; none for the others.
std::optional<std::int64_t> value_over_parameters(Symbol symbol, const Layout& layout,
                                                  const Stage& stage) {
  const auto each_trained = [&](auto&& f) {
    std::int64_t out = 0;
    for_each_parameter(layout, stage,
                       [&](const LocalParameter& p) { out = p.trainable ? f(out, p) : out; });
    return out;
  };
  using Value = std::int64_t;
  using Local = LocalParameter;
  if (symbol == Symbol::parameters) {
    return each_trained([](Value sum, const Local& p) { return sum + p.elements; });
  }
  if (symbol == Symbol::owned) {
    return each_trained([](Value sum, const Local& p) { return sum + p.rest[1]; });
  }
  if (symbol == Symbol::tensors) {
    return each_trained([](Value sum, const Local&) { return sum + 1; });
  }
  if (symbol == Symbol::largest_tensor) {
    return each_trained([](Value most, const Local& p) { return std::max(most, p.elements); });
  }
  return std::nullopt;
}

/// Symbols that differ between the stages, or that the layout knows better than the job.
std::int64_t value_of(Symbol symbol, const Layout& layout, const Stage& stage) {
  if (symbol == Symbol::sequence) return layout.tokens;
  if (symbol == Symbol::residual_tokens) return layout.residual_tokens;
  if (symbol == Symbol::micro_batch) return layout.micro_batch;
  if (symbol == Symbol::vocabulary) return padded_local_vocabulary(layout);
  if (symbol == Symbol::largest_unit) return largest_unit(layout, stage);
  if (symbol == Symbol::blocks) return hosted_blocks(layout, stage);
  if (symbol == Symbol::moe_blocks) return hosted_moe_blocks(layout, stage);
  if (symbol == Symbol::moe_passes) return moe_passes(layout, stage);
  if (symbol == Symbol::experts) return experts_hosted(layout);
  if (const auto sum = value_over_parameters(symbol, layout, stage)) return *sum;
  return value_in_job(symbol, *layout.job).value_or(0);
}

}  // namespace

std::int64_t evaluate(const Amount& amount, const Layout& layout, const Stage& stage) {
  Rational product = amount.factor;
  for (Symbol symbol : amount.symbols) product = product * value_of(symbol, layout, stage);
  product = product + Rational(amount.added);
  const std::int64_t whole =
      (product.numerator() + product.denominator() - 1) / product.denominator();
  return amount.most ? std::min(whole, *amount.most) : whole;
}

bool all_hold(const std::vector<When>& when, const Layout& layout, const Stage& stage) {
  return all_hold(when, *layout.job, {.first = stage.hosts_first, .last = stage.hosts_last});
}

}  // namespace placet
