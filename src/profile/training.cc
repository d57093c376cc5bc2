#include "profile/training.h"

namespace placet {

namespace {

void follow(Dtype parameters, std::vector<OptimizerState>& states) {
  for (OptimizerState& state : states) {
    const bool moment = state.extent == OptimizerState::Extent::element;
    if (moment && state.dtype == Dtype::fp32) state.dtype = parameters;
  }
}

}  // namespace

void follow_parameters(const Precision& precision, Optimizer& optimizer) {
  if (precision.master) return;
  follow(precision.parameters, optimizer.states);
  follow(precision.parameters, optimizer.other_states);
}

bool is_other(const Optimizer& optimizer, const Parameter& parameter) {
  // A bare count has tensors of no class: nothing says that they are not matrices.
  if (optimizer.other_states.empty() || parameter.classes == 0) return false;
  // Experts side by side have their vectors side by side.
  const bool stacked = !parameter.dims.empty() && parameter.dims[0].index == Index::expert;
  const std::size_t sides = parameter.dims.size() - (stacked ? 1 : 0);
  return sides < 2 || (parameter.classes & optimizer.other_classes) != 0;
}

const std::vector<OptimizerState>& states_of(const Optimizer& optimizer,
                                             const Parameter& parameter) {
  return is_other(optimizer, parameter) ? optimizer.other_states : optimizer.states;
}

UpdateRegion region_of(const Optimizer& optimizer, const Parameter& parameter) {
  return is_other(optimizer, parameter) ? UpdateRegion::element : optimizer.region;
}

const UpdateCost& cost_of(const Optimizer& optimizer, const Parameter& parameter) {
  return is_other(optimizer, parameter) ? optimizer.other_cost : optimizer.cost;
}

}  // namespace placet
