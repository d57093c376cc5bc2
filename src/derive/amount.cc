// Conditions and amounts of an engine profile, evaluated on one device class.
#include <algorithm>

#include "derive/memory.h"
#include "units/checked.h"

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// Sums or takes the maximum of f over the parameters of the stage's units.
template <class F>
void for_each_parameter(const Layout& layout, const Stage& stage, F&& f) {
  for (const std::vector<int>& chunk : stage.chunks) {
    for (int u : chunk) {
      const LocalUnit& unit = layout.units[at(layout.unit_of[at(u)])];
      for (const LocalParameter& parameter : unit.parameters) f(unit, parameter);
    }
  }
}

std::int64_t largest_unit(const Layout& layout, const Stage& stage) {
  std::int64_t largest = 0;
  for (const std::vector<int>& chunk : stage.chunks) {
    for (int u : chunk) {
      std::int64_t sum = 0;
      for (const LocalParameter& p : layout.units[at(layout.unit_of[at(u)])].parameters) {
        sum += p.elements;
      }
      largest = std::max(largest, sum);
    }
  }
  return largest;
}

std::int64_t hosted_blocks(const Layout& layout, const Stage& stage) {
  std::int64_t blocks = 0;
  for (const std::vector<int>& chunk : stage.chunks) {
    blocks += std::ranges::count_if(chunk, [&](int u) {
      const Model& model = layout.job->model;
      return model.kinds[at(model.units[at(u)].kind)].role == UnitRole::block;
    });
  }
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

std::int64_t experts_hosted(const Layout& layout) {
  std::int64_t degree = 1;
  for (const AxisPlacement& axis : layout.job->placement.axes) {
    if (how_of(axis, bit_of(TensorClass::experts), std::nullopt).cut == Cut::expert) {
      degree *= axis.degree;
    }
  }
  return (layout.job->model.figures.experts + degree - 1) / degree;
}

std::int64_t value_of(Symbol symbol, const Layout& layout, const Stage& stage) {
  const Job& job = *layout.job;
  std::int64_t sum = 0;
  switch (symbol) {
    case Symbol::micro_batch: return layout.micro_batch;
    case Symbol::micro_batches: return layout.micro_batches;
    case Symbol::sequence: return layout.tokens;
    case Symbol::residual_tokens: return layout.residual_tokens;
    case Symbol::hidden: return job.model.figures.hidden;
    case Symbol::vocabulary: return padded_local_vocabulary(layout);
    case Symbol::parameters:
      for_each_parameter(layout, stage, [&](const LocalUnit&, const LocalParameter& p) {
        if (p.trainable && p.stored) sum += p.elements;
      });
      return sum;
    case Symbol::owned:
      for_each_parameter(layout, stage, [&](const LocalUnit&, const LocalParameter& p) {
        if (p.trainable && p.stored) sum += p.rest[1];
      });
      return sum;
    case Symbol::largest_unit: return largest_unit(layout, stage);
    case Symbol::largest_tensor:
      for_each_parameter(layout, stage, [&](const LocalUnit&, const LocalParameter& p) {
        sum = std::max(sum, p.elements);
      });
      return sum;
    case Symbol::blocks: return hosted_blocks(layout, stage);
    case Symbol::experts: return experts_hosted(layout);
    case Symbol::data_degree: return layout.data_degree;
    case Symbol::tensor_degree: return layout.tensor_degree;
    case Symbol::devices: return devices_of(job.placement);
  }
  return 0;
}

bool axis_part_holds(const When& when, const Placement& placement) {
  if (!when.cut && !when.state) return true;
  std::int64_t degree = 1;
  for (const AxisPlacement& axis : placement.axes) {
    if (when.cut && axis.how.cut != *when.cut) continue;
    if (when.state && std::ranges::find(when.modes, axis.how.modes[*when.state]) ==
                          when.modes.end()) {
      continue;
    }
    degree = checked_multiply(degree, axis.degree, "product of degrees");
  }
  return (degree > when.degree_above) != when.absent;
}

bool holds(const When& when, const Layout& layout, const Stage& stage) {
  if (when.first_stage && *when.first_stage != stage.hosts_first) return false;
  if (when.last_stage && *when.last_stage != stage.hosts_last) return false;
  if (when.accumulates && *when.accumulates != (layout.micro_batches > 1)) return false;
  if (when.compute && *when.compute != layout.job->precision.compute) return false;
  if (when.recomputes && *when.recomputes != recomputes_units(*layout.job)) return false;
  return axis_part_holds(when, layout.job->placement);
}

}  // namespace

std::int64_t evaluate(const Amount& amount, const Layout& layout, const Stage& stage) {
  Rational product = amount.factor;
  for (Symbol symbol : amount.symbols) product = product * value_of(symbol, layout, stage);
  return (product.numerator() + product.denominator() - 1) / product.denominator();
}

bool all_hold(const std::vector<When>& when, const Layout& layout, const Stage& stage) {
  return std::ranges::all_of(when, [&](const When& w) { return holds(w, layout, stage); });
}

}  // namespace placet
