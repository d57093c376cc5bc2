#include "derive/exchange_memory.h"

#include <algorithm>

#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

/// Adds up the steps of one exchange over the axes that share it.
class ExchangeSum {
 public:
  ExchangeSum(const Layout& layout, const LocalUnit& unit, const Operator& op)
      : layout_(layout), job_(*layout.job), unit_(unit), op_(op) {}

  void add(const AttentionExchange& exchange, AxisMask mask, Pass pass, ExchangeBytes& out) const {
    const std::int64_t others = degree_of(job_.placement, mask) - 1;
    for (const ExchangeStep& step : exchange.steps) {
      if (step.in_backward == (pass == Pass::backward)) add_step(step, mask, others, out);
    }
    if (job_.profile.parts_stand_apart && others > 0 && goes_round(exchange)) {
      out.pieces += pass == Pass::forward ? sums_of_rounds()
                                          : bytes_in_compute(elements_of(AttentionTensor::query));
    }
  }

 private:
  void add_step(const ExchangeStep& step, AxisMask mask, std::int64_t others,
                ExchangeBytes& out) const {
    using Movement = ExchangeStep::Movement;
    switch (step.movement) {
      case Movement::gather:
        out.gathered += whole_of(step, mask);
        return;
      case Movement::scatter_sum:
        out.sums += whole_of(step, mask);
        return;
      case Movement::pieces:
      case Movement::pieces_sum:
        out.pieces += std::min<std::int64_t>(others, 2) * part_of(step);
        return;
      case Movement::heads:
      case Movement::tokens:
        out.message =
            std::max(out.message, step.together ? copied_part_of(step) : largest_of(step));
        return;
    }
  }

  static bool goes_round(const AttentionExchange& exchange) {
    return std::ranges::any_of(exchange.steps, [](const ExchangeStep& step) {
      return step.movement == ExchangeStep::Movement::pieces;
    });
  }

  /// What rounds add up in fp32 until the core has its result, and what one of them gives to it:
  /// two numerators where the result is not yet, and a further denominator.
  std::int64_t sums_of_rounds() const {
    const std::int64_t result = elements_of(AttentionTensor::output);
    const std::int64_t denominators = unit_.values[at(op_.internals[internal::kLogSumExp])];
    return in_bytes(bytes_of(2 * result + denominators, Dtype::fp32)) - bytes_in_compute(result);
  }

  std::int64_t elements_of(AttentionTensor tensor) const {
    return unit_.values[at(exchanged_value(op_, tensor, job_.profile))];
  }

  std::int64_t bytes_in_compute(std::int64_t elements) const {
    return in_bytes(bytes_of(elements, job_.precision.compute));
  }

  std::int64_t whole_of(const ExchangeStep& step, AxisMask mask) const {
    std::int64_t sum = 0;
    for (const AttentionTensor tensor : step.tensors) {
      const std::int64_t whole = along_whole_sequence(layout_, mask, elements_of(tensor));
      sum = checked_add(sum, bytes_in_compute(whole), "attention exchange");
    }
    return sum;
  }

  std::int64_t part_of(const ExchangeStep& step) const {
    std::int64_t sum = 0;
    for (const AttentionTensor tensor : step.tensors) {
      sum = checked_add(sum, bytes_in_compute(elements_of(tensor)), "attention exchange");
    }
    return sum;
  }

  /// A head that several devices share is sent to each.
  std::int64_t copied_elements_of(AttentionTensor tensor) const {
    const int v = exchanged_value(op_, tensor, job_.profile);
    return checked_multiply(unit_.values[at(v)], copies_of_heads(layout_, unit_, v),
                            "attention exchange");
  }

  std::int64_t copied_part_of(const ExchangeStep& step) const {
    std::int64_t sum = 0;
    for (const AttentionTensor tensor : step.tensors) {
      sum = checked_add(sum, bytes_in_compute(copied_elements_of(tensor)), "attention exchange");
    }
    return sum;
  }

  std::int64_t largest_of(const ExchangeStep& step) const {
    std::int64_t most = 0;
    for (const AttentionTensor tensor : step.tensors) {
      most = std::max(most, bytes_in_compute(copied_elements_of(tensor)));
    }
    return most;
  }

  const Layout& layout_;
  const Job& job_;
  const LocalUnit& unit_;
  const Operator& op_;
};

bool exchanges(const Job& job, std::size_t a) {
  const AxisPlacement& axis = job.placement.axes[a];
  return axis.how.cut == Cut::sequence && axis.degree > 1;
}

/// Axes from `a` on with the same exchange: one group.
AxisMask axes_like(const Job& job, std::size_t a) {
  AxisMask mask = 0;
  for (std::size_t b = a; b < job.attention.size(); ++b) {
    const bool alike = exchanges(job, b) && job.attention[b] == job.attention[a];
    if (alike) mask |= axis_bit(static_cast<int>(b));
  }
  return mask;
}

/// An engine that repeats keys and values for all heads moves what it has repeated.
int expanded(const Operator& op, int input, int internal_value, const Profile& profile) {
  const bool repeats = profile.repeats_kv_heads && op.internals.size() > at(internal_value);
  return repeats ? op.internals[at(internal_value)] : op.inputs[at(input)];
}

}  // namespace

int exchanged_value(const Operator& op, AttentionTensor tensor, const Profile& profile) {
  switch (tensor) {
    case AttentionTensor::query:
    case AttentionTensor::query_gradient:
      return op.inputs[0];
    case AttentionTensor::keys:
    case AttentionTensor::keys_gradient:
      return expanded(op, 1, internal::kKeysExpanded, profile);
    case AttentionTensor::values:
    case AttentionTensor::values_gradient:
      return expanded(op, 2, internal::kValuesExpanded, profile);
    case AttentionTensor::output:
    case AttentionTensor::output_gradient:
      return op.outputs[0];
  }
  return op.outputs[0];
}

std::int64_t along_whole_sequence(const Layout& layout, AxisMask mask, std::int64_t part) {
  const Job& job = *layout.job;
  const std::int64_t tokens = own_part(layout, job.batch.sequence, layout.sequence_axes & ~mask);
  return checked_multiply(part / std::max<std::int64_t>(1, layout.tokens), tokens,
                          "attention exchange");
}

std::array<NamedBytes, 4> named_parts(const ExchangeBytes& exchange) {
  return {{{"keys and values gathered for attention", exchange.gathered},
           {"whole gradients of keys and values", exchange.sums},
           {"pieces of attention from other devices", exchange.pieces},
           {"attention on its way to another layout", exchange.message}}};
}

bool exchanges_heads(const Job& job) {
  for (std::size_t a = 0; a < job.attention.size(); ++a) {
    if (exchanges(job, a) && job.attention[a].cuts_heads) return true;
  }
  return false;
}

std::int64_t copies_of_heads(const Placement& placement, const Dim& heads, AxisMask cut,
                             std::int64_t degree) {
  const std::int64_t here = largest_part(placement, heads.parts, cut);
  return degree > here && degree % here == 0 ? degree / here : 1;
}

std::int64_t copies_of_heads(const Layout& layout, const LocalUnit& unit, int value) {
  const Job& job = *layout.job;
  const std::vector<Dim>& dims = job.model.kinds[at(unit.kind)].values[at(value)].dims;
  const auto heads = std::ranges::find(dims, Index::kv_head, &Dim::index);
  if (heads == dims.end()) return 1;
  const ClassSet classes = layout.prepared->kinds[at(unit.kind)].values[at(value)].classes;
  AxisMask cut = 0;
  std::int64_t degree = 1;
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    const AxisPlacement& axis = job.placement.axes[a];
    const bool exchanged = a < job.attention.size() && exchanges(job, a);
    if (exchanged && job.attention[a].cuts_heads) degree *= axis.degree;
    const How& how = how_of(axis, classes, std::nullopt);
    if (how.cut == Cut::tensor && contains(how.tensor_indices, Index::kv_head)) {
      cut |= axis_bit(static_cast<int>(a));
    }
  }
  return copies_of_heads(job.placement, *heads, cut, degree);
}

ExchangeBytes exchange_bytes(const Layout& layout, const LocalUnit& unit, const Operator& op,
                             Pass pass) {
  ExchangeBytes out;
  if (op.kind != OpKind::attention || layout.sequence_axes == 0) return out;
  if (op.inputs.size() < 3 || op.outputs.empty()) return out;
  const Job& job = *layout.job;
  const ExchangeSum sum(layout, unit, op);
  AxisMask seen = 0;
  for (std::size_t a = 0; a < job.attention.size(); ++a) {
    if (!exchanges(job, a) || (seen >> a & 1U) != 0) continue;
    const AxisMask alike = axes_like(job, a);
    seen |= alike;
    sum.add(job.attention[a], alike, pass, out);
  }
  return out;
}

}  // namespace placet
