#include "derive/narrow_products.h"

#include <algorithm>

#include "profile/autocast.h"
#include "units/at.h"

namespace placet {

bool has_products_format(const Job& job, const UnitKind& kind, const Operator& op) {
  if (!job.precision.products) return false;
  if (op.kind != OpKind::linear && op.kind != OpKind::grouped_linear) return false;
  if (op.module == Module::head) return job.profile.timing.narrow_head;
  return op.module != Module::embedding && std::ranges::none_of(op.parameters, [&](int p) {
           return contains(kind.parameters[at(p)].classes, TensorClass::router);
         });
}

namespace {

/// Whether attention makes the operator's input, and so keeps it.
bool follows_attention(const UnitKind& kind, const Operator& op) {
  return std::ranges::any_of(kind.operators, [&](const Operator& other) {
    return other.kind == OpKind::attention && !op.inputs.empty() &&
           std::ranges::find(other.outputs, op.inputs.front()) != other.outputs.end();
  });
}

/// What the job's products read where it goes from device to device; none: values as they are.
const StorageFormat* sent_numbers(const Job& job) {
  if (!job.precision.products || job.profile.keeps_wide_inputs) return nullptr;
  const StorageFormat& numbers = job.precision.products->numbers;
  const bool sent = bits_of(numbers.dtype) == 8 && bits_of(job.precision.compute) > 8;
  return sent ? &numbers : nullptr;
}

bool holds(const std::vector<int>& values, int value) {
  return std::ranges::find(values, value) != values.end();
}

bool is_adapter(const UnitKind& kind, const Operator& op) {
  return std::ranges::any_of(op.parameters, [&](int p) {
    return contains(kind.parameters[at(p)].classes, TensorClass::adapters);
  });
}

/// Whether the operator is an adapter's first matrix, in more bits than products have: its module
/// casts what comes in to the format of the matrix, and the product casts that once more.
bool enters_wide_adapter(const Job& job, const UnitKind& kind, const Operator& op) {
  if (!is_adapter(kind, op) || !is_wide_in_use(job, kind.parameters[at(op.parameters.front())])) {
    return false;
  }
  return std::ranges::none_of(kind.operators, [&](const Operator& other) {
    return is_adapter(kind, other) && holds(other.outputs, op.inputs.front());
  });
}

}  // namespace

bool casts_inputs(const Job& job, const UnitKind& kind, const Operator& op) {
  if (!is_cast(job.profile, op)) return false;
  return enters_wide_adapter(job, kind, op) || std::ranges::any_of(op.inputs, [&](int v) {
           return kind.values[at(v)].type == ValueType::fp32;
         });
}

bool casts_weights(const Job& job, const UnitKind& kind, const Operator& op) {
  return is_cast(job.profile, op) && std::ranges::any_of(op.parameters, [&](int p) {
           return is_wide_in_use(job, kind.parameters[at(p)]);
         });
}

const StorageFormat* gathered_in(const Job& job, const UnitKind& kind, int value) {
  bool is_read = false;
  for (const Operator& op : kind.operators) {
    if (op.region != Region::parallel || !holds(op.inputs, value)) continue;
    if (!has_products_format(job, kind, op)) return nullptr;
    is_read = true;
  }
  return is_read ? sent_numbers(job) : nullptr;
}

const StorageFormat* gradient_gathered_in(const Job& job, const UnitKind& kind, int value) {
  const auto made = std::ranges::find_if(
      kind.operators, [&](const Operator& op) { return holds(op.outputs, value); });
  if (made == kind.operators.end()) return nullptr;
  if (made->kind == OpKind::bias) return gradient_gathered_in(job, kind, made->inputs.front());
  return has_products_format(job, kind, *made) ? sent_numbers(job) : nullptr;
}

StorageFormat format_of_copies(const Job& job) {
  if (job.precision.products && job.profile.autocasts.empty())
    return job.precision.products->numbers;
  return {.dtype = job.precision.compute, .constants = {}};
}

bool keeps_narrow_inputs(const Job& job, const UnitKind& kind, const Operator& op) {
  if (casts_inputs(job, kind, op)) return true;
  if (!has_products_format(job, kind, op) || job.profile.keeps_wide_inputs) return false;
  const bool once =
      job.profile.keeps_attention_result_once && !job.precision.products->scales_from_before;
  if (once && follows_attention(kind, op)) return false;
  return bits_of(job.precision.products->numbers.dtype) < bits_of(job.precision.compute);
}

}  // namespace placet
