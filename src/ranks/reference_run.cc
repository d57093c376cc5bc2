#include "ranks/reference_run.h"

#include <algorithm>

#include "ranks/numbers.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::ranks {
namespace {

std::string name_of(const ReferenceParameter& parameter, int number) {
  std::string name = parameter.name;
  const std::size_t mark = name.find("{}");
  if (mark != std::string::npos) name.replace(mark, 2, std::to_string(number));
  return name;
}

const ReferenceParameter& parameter_of(const Reference& reference, const StateRef& ref) {
  const ReferenceUnit& unit = reference.units.at(at(ref.unit));
  return reference.kinds.at(at(unit.kind)).parameters.at(at(ref.tensor));
}

/// The tensor whose storage it is.
StateRef owner_of(StateRef ref, const Reference& reference) {
  if (ref.kind != StateRef::Kind::parameter && ref.kind != StateRef::Kind::state) return ref;
  for (std::size_t steps = 0; steps <= reference.units.size(); ++steps) {
    const ReferenceParameter& parameter = parameter_of(reference, ref);
    if (!parameter.tied) return ref;
    ref.unit = parameter.tied->unit;
    ref.tensor = parameter.tied->parameter;
  }
  refuse("reference", parameter_of(reference, ref).name, "is a shared tensor without an owner");
}

/// Fields that a kind of tensor does not have are 0.
StateRef plain(const StateRef& ref) {
  switch (ref.kind) {
    case StateRef::Kind::parameter:
      return {.kind = ref.kind, .unit = ref.unit, .tensor = ref.tensor};
    case StateRef::Kind::state:
      return ref;
    case StateRef::Kind::input:
    case StateRef::Kind::number:
      return {.kind = ref.kind, .tensor = ref.tensor};
    case StateRef::Kind::zero:
    case StateRef::Kind::loss:
      return {.kind = ref.kind};
  }
  fail_internally("every kind of state is known");
}

}  // namespace

std::uint64_t draw_number(const std::string& name, std::int64_t unit) {
  return mixed(number_of(name) + static_cast<std::uint64_t>(unit));
}

std::vector<std::int64_t> index_of(const ReferenceTensor& tensor, std::int64_t address) {
  std::int64_t rest = address - tensor.address;
  std::vector<std::int64_t> index(tensor.extents.size(), 0);
  for (std::size_t d = index.size(); d-- > 0;) {
    index[d] = rest % tensor.extents[d];
    rest /= tensor.extents[d];
  }
  return index;
}

const ReferenceTensor* ReferenceRun::find(const StateRef& ref, const Reference& reference) const {
  const StateRef wanted = plain(owner_of(ref, reference));
  const auto found = std::ranges::find(tensors, wanted, &ReferenceTensor::ref);
  return found == tensors.end() ? nullptr : &*found;
}

ReferenceBuilder::ReferenceBuilder(const Program& program, KernelLibrary& library)
    : program_(program), reference_(program.reference), library_(library) {
  for (const ReferenceKind& kind : reference_.kinds) {
    backward_.push_back(backward_of(kind, program_.kernels));
    has_gradient_.push_back(values_with_gradient(kind, program_.kernels));
  }
}

const ReferenceKind& ReferenceBuilder::kind_of(std::size_t unit) const {
  return reference_.kinds.at(at(reference_.units[unit].kind));
}

const Kernel& ReferenceBuilder::kernel(int k) const {
  if (k < 0 || at(k) >= program_.kernels.size())
    refuse("reference", std::to_string(k), "is no kernel");
  return program_.kernels[at(k)];
}

Extents ReferenceBuilder::extents_of(const std::vector<int>& dims) const {
  Extents extents;
  for (int d : dims) extents.push_back(program_.dims.at(at(d)).extent);
  return extents;
}

ReferenceBuilder::Place ReferenceBuilder::reserve(const std::vector<int>& dims) {
  Place place{.extents = extents_of(dims)};
  place.address = out_.list.reserve(elements_in(place.extents));
  return place;
}

ReferenceRun ReferenceBuilder::build() {
  const std::size_t units = reference_.units.size();
  values_.resize(units);
  gradients_.resize(units);
  place_inputs();
  place_numbers();
  for (std::size_t u = 0; u < units; ++u) place_parameters(u);
  for (std::size_t u = 0; u < units; ++u) place_values(u);
  place_gradients();
  for (std::size_t u = 0; u < units; ++u) bound_ids(u);
  for (std::size_t u = 0; u < units; ++u) forward(u);
  seed();
  for (std::size_t u = units; u-- > 0;) backward(u);
  update();
  return std::move(out_);
}

void ReferenceBuilder::place_inputs() {
  for (std::size_t i = 0; i < reference_.inputs.size(); ++i) {
    const ReferenceInput& input = reference_.inputs[i];
    const Place place = reserve(input.dims);
    out_.tensors.push_back({.name = input.name,
                            .ref = {.kind = StateRef::Kind::input, .tensor = static_cast<int>(i)},
                            .address = place.address,
                            .extents = place.extents,
                            .dims = input.dims});
  }
  loss_ = reserve({});
  out_.tensors.push_back(
      {.name = "loss", .ref = {.kind = StateRef::Kind::loss}, .address = loss_.address});
}

void ReferenceBuilder::place_numbers() {
  for (std::size_t i = 0; i < reference_.numbers.size(); ++i) {
    numbers_.push_back(reserve({}));
    out_.tensors.push_back({.name = reference_.numbers[i],
                            .ref = {.kind = StateRef::Kind::number, .tensor = static_cast<int>(i)},
                            .address = numbers_.back().address});
  }
}

void ReferenceBuilder::place_parameters(std::size_t unit) {
  const ReferenceKind& kind = kind_of(unit);
  for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
    const ReferenceParameter& parameter = kind.parameters[p];
    if (parameter.tied) continue;
    const std::vector<int>& dims = kind.values.at(at(parameter.value)).dims;
    const std::string name = name_of(parameter, reference_.units[unit].number);
    const auto add = [&](const std::string& text, StateRef ref) {
      const Place place = reserve(dims);
      out_.tensors.push_back({.name = text,
                              .ref = ref,
                              .address = place.address,
                              .extents = place.extents,
                              .dims = dims});
    };
    StateRef ref{.kind = StateRef::Kind::parameter,
                 .unit = static_cast<int>(unit),
                 .tensor = static_cast<int>(p)};
    add(name, ref);
    if (!parameter.trainable) continue;
    const UpdateRule& rule = reference_.rules.at(at(parameter.rule));
    for (std::size_t s = 0; s < rule.states.size(); ++s) {
      ref.kind = StateRef::Kind::state;
      ref.state = static_cast<int>(s);
      add(rule.states[s] + " of " + name, ref);
    }
  }
}

/// Inputs, parameters and the stream stand where they are made; all others get a place here.
void ReferenceBuilder::place_values(std::size_t unit) {
  const ReferenceKind& kind = kind_of(unit);
  for (std::size_t v = 0; v < kind.values.size(); ++v) {
    const ReferenceValue& value = kind.values[v];
    const Place place =
        static_cast<int>(v) == kind.stream_in ? stream_into(unit) : place_of(value, unit);
    if (place.extents != extents_of(value.dims)) {
      refuse("reference", value.name, "has other dims than the tensor that it is");
    }
    values_[unit].push_back(place);
  }
}

/// What the nearest unit before this one hands on.
ReferenceBuilder::Place ReferenceBuilder::stream_into(std::size_t unit) const {
  for (std::size_t before = unit; before-- > 0;) {
    const int out = kind_of(before).stream_out;
    if (out >= 0) return values_[before].at(at(out));
  }
  refuse("reference", kind_of(unit).name, "takes a stream that no unit before it gives");
}

ReferenceBuilder::Place ReferenceBuilder::place_of(const ReferenceValue& value, std::size_t unit) {
  StateRef ref;
  if (value.input >= 0) ref = {.kind = StateRef::Kind::input, .tensor = value.input};
  if (value.parameter >= 0) {
    ref = {.kind = StateRef::Kind::parameter,
           .unit = static_cast<int>(unit),
           .tensor = value.parameter};
  }
  if (ref.kind == StateRef::Kind::zero) return reserve(value.dims);
  const ReferenceTensor* tensor = out_.find(ref, reference_);
  if (tensor == nullptr) refuse("reference", value.name, "is a tensor that does not exist");
  return {.address = tensor->address, .extents = tensor->extents};
}

/// One gradient for all values that are the same tensor: the stream, a shared parameter.
void ReferenceBuilder::place_gradients() {
  for (std::size_t u = 0; u < values_.size(); ++u) {
    const std::vector<bool>& has = has_gradient_[at(reference_.units[u].kind)];
    for (std::size_t v = 0; v < values_[u].size(); ++v) {
      gradients_[u].push_back(has[v] ? gradient_of(values_[u][v]) : Place{});
    }
  }
}

/// Begins as zero, where no gradient reaches the value remains it.
ReferenceBuilder::Place ReferenceBuilder::gradient_of(const Place& value) {
  const auto [found, fresh] = gradient_at_.try_emplace(value.address);
  if (fresh) {
    found->second = {.address = out_.list.reserve(elements_in(value.extents)),
                     .extents = value.extents};
    zero(found->second);
  }
  return found->second;
}

/// Inputs that a kernel compares with positions are drawn among these, or all would differ.
void ReferenceBuilder::bound_ids(std::size_t unit) {
  const ReferenceKind& kind = kind_of(unit);
  for (const Application& a : kind.applications) {
    const Kernel& k = kernel(a.kernel);
    const Binding binding = bound(k, places_of(unit, a.inputs), places_of(unit, a.outputs));
    for (const Statement& s : k.statements) {
      if (s.function != "onehot" || s.operands.empty() || s.positions.empty()) continue;
      const int tensor = s.operands[0].tensor;
      const int input = tensor < k.inputs ? kind.values.at(at(a.inputs[at(tensor)])).input : -1;
      if (input < 0) continue;
      std::int64_t& below = out_.tensors.at(at(input)).below;
      below = std::max(below, binding.extents[at(s.positions[0])]);
    }
  }
}

std::vector<ReferenceBuilder::Place> ReferenceBuilder::places_of(
    std::size_t unit, const std::vector<int>& values) const {
  std::vector<Place> places;
  places.reserve(values.size());
  for (int v : values) places.push_back(values_[unit].at(at(v)));
  return places;
}

Binding ReferenceBuilder::bound(const Kernel& k, const std::vector<Place>& inputs,
                                const std::vector<Place>& outputs) {
  std::vector<BufferView> views;
  for (const std::vector<Place>* places : {&inputs, &outputs}) {
    for (const Place& place : *places) {
      views.push_back({.size = elements_in(place.extents), .extents = &place.extents});
    }
  }
  Binding binding = bind_kernel(k, views);
  if (!binding.problem.empty()) refuse("reference", k.name, binding.problem);
  return binding;
}

Operation& ReferenceBuilder::call(const Kernel& k, const std::vector<Place>& inputs,
                                  const std::vector<Place>& outputs) {
  const Binding binding = bound(k, inputs, outputs);
  std::vector<std::int64_t> addresses;
  addresses.reserve(inputs.size() + outputs.size());
  for (const Place& place : inputs) addresses.push_back(place.address);
  for (const Place& place : outputs) addresses.push_back(place.address);
  return out_.list.add_call(*library_.compiled(k, binding.extents), addresses, k.inputs);
}

void ReferenceBuilder::zero(const Place& place) {
  const std::size_t first = out_.list.transfers.size();
  out_.list.add_transfer(elements_in(place.extents), {}, {place.address});
  out_.list.add_move(first, Combine::sum);
}

void ReferenceBuilder::add_to(const Place& target, const Place& share) {
  const std::size_t first = out_.list.transfers.size();
  out_.list.add_transfer(elements_in(target.extents), {target.address, share.address},
                         {target.address});
  out_.list.add_move(first, Combine::sum);
}

void ReferenceBuilder::forward(std::size_t unit) {
  for (const Application& a : kind_of(unit).applications) {
    Operation& op = call(kernel(a.kernel), places_of(unit, a.inputs), places_of(unit, a.outputs));
    op.draws = true;
    op.draw = draw_number(a.key, static_cast<std::int64_t>(unit));
  }
}

/// The gradient of each token's loss, and the loss of the step.
void ReferenceBuilder::seed() {
  zero(loss_);
  if (reference_.count_kernel < 0 || reference_.seed_kernel < 0) {
    refuse("reference", "loss",
           "has no weights: a kernel that counts and one that gives the gradient");
  }
  const ReferenceTensor& weights = out_.tensors.at(at(reference_.weights));
  const Place place{.address = weights.address, .extents = weights.extents};
  count_ = reserve({});
  seeds_ = reserve(weights.dims);
  call(kernel(reference_.count_kernel), {place}, {count_});
  call(kernel(reference_.seed_kernel), {place, count_}, {seeds_});
  add_losses();
}

void ReferenceBuilder::add_losses() {
  static const Kernel kWeighted{
      .name = "weighted-loss",
      .dims = {{.name = std::string(kAnyDims)}},
      .tensors = {{"w", {0}}, {"x", {0}}, {"y", {}}},
      .inputs = 2,
      .outputs = 1,
      .statements = {{.result = {2, {}}, .products = {{.operands = {{0, {0}}, {1, {0}}}}}}}};
  Place scaled = seeds_;
  if (!numbers_.empty()) {
    scaled.address = out_.list.reserve(elements_in(scaled.extents));
    call(kernel(reference_.scale_kernel), {seeds_, numbers_.front()}, {scaled});
  }
  for (std::size_t u = 0; u < reference_.units.size(); ++u) {
    const int loss = kind_of(u).loss;
    if (loss < 0) continue;
    const Place& value = values_[u][at(loss)];
    if (value.extents != seeds_.extents)
      refuse("reference", "loss", "has other dims than its weights");
    const Place share = reserve({});
    call(kWeighted, {seeds_, value}, {share});
    add_to(loss_, share);
    if (gradients_[u][at(loss)].address >= 0) add_to(gradients_[u][at(loss)], scaled);
  }
}

void ReferenceBuilder::backward(std::size_t unit) {
  const ReferenceKind& kind = kind_of(unit);
  for (const BackwardApplication& b : backward_[at(reference_.units[unit].kind)]) {
    const Application& a = kind.applications[at(b.application)];
    const Adjoint& adjoint = b.adjoint;
    const int inputs = kernel(a.kernel).inputs;
    const auto value_at = [&](int tensor) {
      return tensor < inputs ? a.inputs[at(tensor)] : a.outputs[at(tensor - inputs)];
    };
    std::vector<Place> in;
    std::vector<Place> shares;
    in.reserve(adjoint.from.size() + adjoint.reads.size());
    for (int t : adjoint.from) in.push_back(gradients_[unit][at(value_at(t))]);
    for (int t : adjoint.reads) in.push_back(values_[unit][at(value_at(t))]);
    for (int t : adjoint.to) {
      const Place& value = values_[unit][at(value_at(t))];
      shares.push_back(
          {.address = out_.list.reserve(elements_in(value.extents)), .extents = value.extents});
    }
    Operation& op = call(adjoint.kernel, in, shares);
    op.draws = true;
    op.draw = draw_number(a.key, static_cast<std::int64_t>(unit));
    for (std::size_t i = 0; i < shares.size(); ++i) {
      add_to(gradients_[unit][at(value_at(adjoint.to[i]))], shares[i]);
    }
  }
}

ReferenceBuilder::Place ReferenceBuilder::gradient_of_parameter(std::size_t unit,
                                                                std::size_t parameter) {
  return gradient_of(values_[unit][at(kind_of(unit).parameters[parameter].value)]);
}

/// What a kernel gives of each gradient, added up over all of them.
ReferenceBuilder::Place ReferenceBuilder::sum_over_gradients(int measure) {
  Place sum = reserve({});
  zero(sum);
  for (std::size_t u = 0; u < reference_.units.size(); ++u) {
    const ReferenceKind& kind = kind_of(u);
    for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
      if (kind.parameters[p].tied || !kind.parameters[p].trainable) continue;
      const Place share = reserve({});
      call(kernel(measure), {gradient_of_parameter(u, p)}, {share});
      add_to(sum, share);
    }
  }
  return sum;
}

/// What all updates take beside their own: the factor of gradients, the count of overflows.
std::vector<ReferenceBuilder::Place> ReferenceBuilder::update_numbers() {
  std::vector<Place> out;
  std::vector<Place> inputs;
  if (reference_.norm_kernel >= 0) inputs.push_back(sum_over_gradients(reference_.norm_kernel));
  if (!numbers_.empty()) inputs.push_back(numbers_.front());
  if (reference_.clip_kernel >= 0) {
    out.push_back(reserve({}));
    call(kernel(reference_.clip_kernel), inputs, {out.back()});
  }
  if (!numbers_.empty()) out.push_back(sum_over_gradients(reference_.overflow_kernel));
  return out;
}

void ReferenceBuilder::adjust_numbers(const Place& overflows) {
  std::vector<Place> inputs = numbers_;
  inputs.push_back(overflows);
  call(kernel(reference_.adjust_kernel), inputs, numbers_);
}

void ReferenceBuilder::update() {
  const std::vector<Place> numbers = update_numbers();
  for (const ReferenceTensor& tensor : std::vector<ReferenceTensor>(out_.tensors)) {
    if (tensor.ref.kind != StateRef::Kind::parameter) continue;
    const ReferenceParameter& parameter = parameter_of(reference_, tensor.ref);
    if (!parameter.trainable) continue;
    const UpdateRule& rule = reference_.rules.at(at(parameter.rule));
    std::vector<Place> inputs;
    StateRef ref = tensor.ref;
    for (std::size_t s = 0; s <= rule.states.size(); ++s) {
      const ReferenceTensor* state = out_.find(ref, reference_);
      ensure(state != nullptr, "a trainable parameter has its states");
      inputs.push_back({.address = state->address, .extents = state->extents});
      ref.kind = StateRef::Kind::state;
      ref.state = static_cast<int>(s);
    }
    const std::vector<Place> outputs = inputs;
    inputs.push_back(gradient_of_parameter(at(tensor.ref.unit), at(tensor.ref.tensor)));
    inputs.insert(inputs.end(), numbers.begin(), numbers.end());
    call(kernel(rule.kernel), inputs, outputs);
  }
  if (!numbers_.empty()) adjust_numbers(numbers.back());
}

}  // namespace placet::ranks
