#include "derive/partial_sums.h"

#include <algorithm>

#include "derive/unit_traffic.h"
#include "units/at.h"

namespace placet {
namespace {

IndexSet dims_in(const UnitKind& kind, int v) { return indices_in(kind.values[at(v)].dims); }

/// By value: indices over whose parts it can be a partial sum, forward, inside a parallel region.
std::vector<IndexSet> summed_forward(const UnitKind& kind) {
  std::vector<IndexSet> partial(kind.values.size(), 0);
  for (const Operator& op : kind.operators) {
    IndexSet passed = 0;
    if (op.region == Region::parallel && passes_partial(op.kind)) {
      for (int v : op.inputs) passed |= partial[at(v)];
    }
    for (int v : op.outputs) partial[at(v)] = passed | contracted_indices(kind, op, v);
  }
  return partial;
}

/// By value: whether its gradient may stay partial; else it is made whole where it was made.
std::vector<bool> values_that_stay_partial(const UnitKind& kind) {
  std::vector<bool> stays(kind.values.size(), false);
  for (const Operator& op : kind.operators) {
    const bool linear = is_whole_linear_step(kind, op);
    for (int v : op.outputs) {
      stays[at(v)] = linear && kind.values[at(v)].region != Region::residual;
    }
  }
  return stays;
}

/// By value: indices over whose parts its gradient can be a partial sum.
std::vector<IndexSet> summed_backward(const UnitKind& kind) {
  std::vector<IndexSet> partial(kind.values.size(), 0);
  const std::vector<bool> stays = values_that_stay_partial(kind);
  for (std::size_t o = kind.operators.size(); o-- > 0;) {
    const Operator& op = kind.operators[o];
    if (op.region != Region::parallel) continue;
    IndexSet used = indices_of(kind, op);
    if (is_whole_linear_step(kind, op)) {
      for (int v : op.outputs) used |= partial[at(v)];
    }
    for (int v : op.inputs) {
      if (stays[at(v)]) partial[at(v)] |= used & ~dims_in(kind, v);
    }
  }
  return partial;
}

}  // namespace

bool is_contraction(OpKind kind) {
  return kind == OpKind::linear || kind == OpKind::grouped_linear || kind == OpKind::embedding;
}

bool passes_partial(OpKind kind) {
  return kind == OpKind::linear || kind == OpKind::residual_add || kind == OpKind::dropout;
}

IndexSet contracted_indices(const UnitKind& kind, const Operator& op, int output) {
  if (!is_contraction(op.kind)) return 0;
  IndexSet weights = 0;
  IndexSet inputs = 0;
  for (int p : op.parameters) weights |= indices_in(kind.parameters[at(p)].dims);
  for (int v : op.inputs) inputs |= dims_in(kind, v);
  if (op.kind == OpKind::embedding) inputs = weights;
  return weights & inputs & ~dims_in(kind, output);
}

bool is_whole_linear_step(const UnitKind& kind, const Operator& op) {
  return passes_partial(op.kind) && (indices_of(kind, op) & kTensorIndices) == 0;
}

std::vector<IndexSet> partial_gradient_indices(const UnitKind& kind) {
  const std::vector<IndexSet> forward = summed_forward(kind);
  const std::vector<IndexSet> backward = summed_backward(kind);
  std::vector<IndexSet> out(kind.parameters.size(), 0);
  for (const Operator& op : kind.operators) {
    if (op.region != Region::parallel) continue;
    IndexSet indices = indices_of(kind, op);
    for (int v : op.inputs) indices |= passes_partial(op.kind) ? forward[at(v)] : 0;
    for (int v : op.outputs) indices |= backward[at(v)];
    for (int p : op.parameters) out[at(p)] |= indices;
  }
  for (std::size_t p = 0; p < out.size(); ++p) out[p] &= ~indices_of(kind.parameters[p]);
  return out;
}

}  // namespace placet
