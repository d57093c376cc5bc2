#include "derive/narrow_products.h"

#include <algorithm>

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

}  // namespace

bool keeps_narrow_inputs(const Job& job, const UnitKind& kind, const Operator& op) {
  if (!has_products_format(job, kind, op) || job.profile.keeps_wide_inputs) return false;
  const bool once =
      job.profile.keeps_attention_result_once && !job.precision.products->scales_from_before;
  if (once && follows_attention(kind, op)) return false;
  return bits_of(job.precision.products->numbers.dtype) < bits_of(job.precision.compute);
}

}  // namespace placet
