#include "check/reference_values.h"
#include "check/scales.h"

#include <algorithm>

#include "program/kernel_text.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

// What a leaf is, as the first of its numbers.
constexpr int kState = 0;
constexpr int kNumber = 1;
constexpr int kInput = 2;

}  // namespace

std::string draw_key(const std::string& name, std::int64_t unit, int step) {
  return name + " of unit " + std::to_string(unit) + ", step " + std::to_string(step + 1);
}

ReferenceValues::ReferenceValues(const Program& program, Nodes& nodes, KernelValues& kernels)
    : program_(program), nodes_(nodes), kernels_(kernels) {
  const Reference& reference = program.reference;
  for (const ReferenceKind& kind : reference.kinds) {
    backward_.push_back(backward_of(kind, program.kernels));
  }
  for (std::size_t u = 0; u < reference.units.size(); ++u) {
    const int parameters = static_cast<int>(kind_of(u).parameters.size());
    for (int p = 0; p < parameters; ++p) begin_state(static_cast<int>(u), p);
  }
  for (const std::string& number : reference.numbers) {
    const auto count = static_cast<int>(now_.numbers.size());
    now_.numbers.push_back(nodes_.leaf(number + " before the step", {kNumber, count}, {}));
  }
  now_.inputs.resize(reference.inputs.size());
  bring_samples();
}

ReferenceValues::ReferenceValues(const Program& program, Nodes& nodes, KernelValues& kernels,
                                 const std::vector<After>& known)
    : ReferenceValues(program, nodes, kernels) {
  known_ = &known;
}

/// A parameter and its states, as the step finds them.
void ReferenceValues::begin_state(int unit, int parameter) {
  const ReferenceKind& kind = kind_of(at(unit));
  const ReferenceParameter& p = kind.parameters[at(parameter)];
  if (p.tied) return;
  const std::string name =
      name_of({.kind = StateRef::Kind::parameter, .unit = unit, .tensor = parameter});
  const std::vector<int>& dims = kind.values[at(p.value)].dims;
  now_.state[{unit, parameter, -1}] =
      nodes_.leaf(name + " before the step", {kState, unit, parameter, -1}, dims);
  const auto& states = program_.reference.rules.at(at(p.rule)).states;
  for (std::size_t s = 0; s < states.size(); ++s) {
    std::string text = states[s];
    text += " of " + name + " before the step";
    const auto state = static_cast<int>(s);
    now_.state[{unit, parameter, state}] =
        nodes_.leaf(text, {kState, unit, parameter, state}, dims);
  }
}

const ReferenceKind& ReferenceValues::kind_of(std::size_t unit) const {
  return program_.reference.kinds.at(at(program_.reference.units.at(unit).kind));
}

/// A name with the number of the unit in its place "{}".
std::string ReferenceValues::with_number(std::size_t unit, std::string name) const {
  const std::size_t place = name.find("{}");
  if (place == std::string::npos) return name;
  return name.replace(place, 2, std::to_string(program_.reference.units[unit].number));
}

std::string ReferenceValues::name_of(const StateRef& ref) const {
  if (ref.kind == StateRef::Kind::input) return program_.reference.inputs[at(ref.tensor)].name;
  if (ref.kind == StateRef::Kind::zero) return "zero";
  if (ref.kind == StateRef::Kind::loss) return "loss";
  if (ref.kind == StateRef::Kind::number) return program_.reference.numbers.at(at(ref.tensor));
  const ReferenceKind& kind = kind_of(at(ref.unit));
  std::string name = with_number(at(ref.unit), kind.parameters[at(ref.tensor)].name);
  if (ref.kind == StateRef::Kind::parameter) return name;
  const int rule = kind.parameters[at(ref.tensor)].rule;
  return program_.reference.rules[at(rule)].states.at(at(ref.state)) + " of " + name;
}

const std::vector<int>& ReferenceValues::dims_of(const StateRef& ref) const {
  static const std::vector<int> kNone;
  if (ref.kind == StateRef::Kind::number) return kNone;
  if (ref.kind == StateRef::Kind::input) return program_.reference.inputs[at(ref.tensor)].dims;
  const ReferenceKind& kind = kind_of(at(ref.unit));
  return kind.values[at(kind.parameters[at(ref.tensor)].value)].dims;
}

NodeId ReferenceValues::value_of(const StateRef& ref) const {
  if (ref.kind == StateRef::Kind::input) return now_.inputs.at(at(ref.tensor));
  if (ref.kind == StateRef::Kind::number) return now_.numbers.at(at(ref.tensor));
  if (ref.kind == StateRef::Kind::loss) return nodes_.node_of(now_.loss);
  Key key = key_of(ref.unit, ref.tensor);
  std::get<2>(key) = ref.kind == StateRef::Kind::state ? ref.state : -1;
  return now_.state.at(key);
}

Tensor ReferenceValues::whole(NodeId node, const std::vector<int>& dims) const {
  Tensor out{.dims = dims, .cuts = std::vector<Splits>(dims.size()), .items = {}};
  out.items = {nodes_.item_of(node)};
  return out;
}

std::vector<Tensor> ReferenceValues::call(const Kernel& kernel,
                                          const std::vector<ContentView>& inputs,
                                          const std::string& key,
                                          const std::vector<std::vector<int>>& results) {
  KernelCall call{.kernel = &kernel, .positions = {}, .key = key, .results = {}};
  for (const std::vector<int>& dims : results) {
    std::vector<ResultDim>& result = call.results.emplace_back();
    for (const int dim : dims) result.push_back({.logical = dim, .cuts = {}});
  }
  call.positions.resize(kernel.dims.size());
  call.maker = NodeMaker::reference;
  std::vector<Tensor> out;
  for (Content& c : kernels_.run(call, inputs)) out.push_back(std::move(c.pieces[0]));
  return out;
}

std::vector<Tensor> ReferenceValues::call(int kernel, const std::vector<Tensor>& inputs) {
  std::vector<ContentView> views(inputs.size());
  std::ranges::transform(inputs, views.begin(), view);
  return call(program_.kernels.at(at(kernel)), views, "", {});
}

ReferenceValues::Key ReferenceValues::key_of(int unit, int parameter) const {
  const ReferenceParameter& p = kind_of(at(unit)).parameters[at(parameter)];
  if (p.tied) return {p.tied->unit, p.tied->parameter, -1};
  return {unit, parameter, -1};
}

void ReferenceValues::bring_samples() {
  for (std::size_t i = 0; i < now_.inputs.size(); ++i) {
    const ReferenceInput& input = program_.reference.inputs[i];
    now_.inputs[i] = nodes_.leaf(input.name + " of step " + std::to_string(step_ + 1),
                                 {kInput, static_cast<int>(i), step_}, input.dims);
  }
}

void ReferenceValues::advance() {
  if (known_ != nullptr && at(step_) < known_->size()) {
    now_ = (*known_)[at(step_++)];
    return;
  }
  bring_samples();
  const std::size_t units = program_.reference.units.size();
  values_.assign(units, {});
  gradients_.clear();
  now_.loss = {};
  for (std::size_t u = 0; u < units; ++u) forward(u);
  for (std::size_t u = units; u-- > 0;) backward(u);
  update();
  ++step_;
  values_.clear();
}

void ReferenceValues::forward(std::size_t unit) {
  const ReferenceKind& kind = kind_of(unit);
  std::vector<Tensor>& values = values_[unit];
  values.resize(kind.values.size());
  for (std::size_t v = 0; v < kind.values.size(); ++v) {
    const ReferenceValue& value = kind.values[v];
    if (value.input >= 0) values[v] = whole(now_.inputs[at(value.input)], value.dims);
    if (value.parameter >= 0) {
      values[v] = whole(now_.state.at(key_of(static_cast<int>(unit), value.parameter)), value.dims);
    }
  }
  if (kind.stream_in >= 0) values[at(kind.stream_in)] = stream_;
  for (const Application& a : kind.applications) {
    std::vector<ContentView> inputs(a.inputs.size());
    std::ranges::transform(a.inputs, inputs.begin(), [&](int v) { return view(values[at(v)]); });
    const std::string key = draw_key(a.key, static_cast<std::int64_t>(unit), step_);
    std::vector<std::vector<int>> results(a.outputs.size());
    std::ranges::transform(a.outputs, results.begin(),
                           [&](int v) { return kind.values[at(v)].dims; });
    std::vector<Tensor> outputs = call(program_.kernels.at(at(a.kernel)), inputs, key, results);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      values[at(a.outputs[o])] = std::move(outputs[o]);
    }
  }
  name_values(unit, values, "");
  if (kind.stream_out >= 0) stream_ = values[at(kind.stream_out)];
}

void ReferenceValues::name_values(std::size_t unit, const std::vector<Tensor>& values,
                                  const std::string& prefix) {
  if (!nodes_.keeps_names()) return;
  const ReferenceKind& kind = kind_of(unit);
  const std::string place =
      " of " + kind.name + " " + std::to_string(program_.reference.units[unit].number);
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (values[v].items.empty()) continue;
    if (kind.values[v].parameter >= 0 && prefix.empty()) continue;
    if (values[v].items.size() == 1) {
      const std::string& own = kind.values[v].name;
      const bool numbered = own.find("{}") != std::string::npos;
      std::string text = prefix;
      text += numbered ? with_number(unit, own) : own;
      if (!numbered) text += place;
      nodes_.name(values[v].items[0].node, text);
    }
  }
}

void ReferenceValues::backward(std::size_t unit) {
  const ReferenceKind& kind = kind_of(unit);
  std::vector<Tensor> gradients(kind.values.size());
  for (std::size_t v = 0; v < gradients.size(); ++v) {
    gradients[v].dims = kind.values[v].dims;
    gradients[v].cuts.resize(gradients[v].dims.size());
  }
  if (kind.stream_out >= 0) gradients[at(kind.stream_out)] = stream_;
  if (kind.loss >= 0) gradients[at(kind.loss)] = begin_backward(values_[unit][at(kind.loss)]);
  for (const BackwardApplication& b : backward_[at(program_.reference.units[unit].kind)]) {
    go_back(unit, b, gradients);
  }
  name_values(unit, gradients, "gradient of ");
  for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
    if (!kind.parameters[p].trainable) continue;
    const Tensor& gradient = gradients[at(kind.parameters[p].value)];
    const Key key = key_of(static_cast<int>(unit), static_cast<int>(p));
    const auto [found, fresh] = gradients_.try_emplace(key, gradient);
    if (!fresh) add(nodes_, found->second, gradient);
  }
  if (kind.stream_in >= 0) stream_ = gradients[at(kind.stream_in)];
}

/// Names what a tensor is a multiple of, if it is one of a single node.
void ReferenceValues::name(const Tensor& tensor, const std::string& text) {
  if (tensor.items.size() == 1) nodes_.name(tensor.items[0].node, text);
}

/// Adds to the loss of the step; the gradient of `losses`, one for each token.
Tensor ReferenceValues::begin_backward(const Tensor& losses) {
  const Reference& reference = program_.reference;
  const Tensor weights =
      whole(now_.inputs[at(reference.weights)], reference.inputs[at(reference.weights)].dims);
  const Tensor count = call(reference.count_kernel, {weights})[0];
  name(count, "number of tokens of the step");
  Tensor gradient = call(reference.seed_kernel, {weights, count})[0];
  static const Kernel kWeighted =
      kernel_from("kernel weighted(y[...], d[...]) -> (l[]) {\n l[] = y[...] * d[...]\n}");
  add(nodes_, now_.loss, call(kWeighted, {view(losses), view(gradient)}, "", {})[0]);
  return now_.numbers.empty() ? gradient : scaled(gradient);
}

/// The gradient of each token's loss times the scale of the loss.
Tensor ReferenceValues::scaled(const Tensor& gradient) {
  return call(program_.reference.scale_kernel, {gradient, whole(now_.numbers.front(), {})})[0];
}

/// One kernel of backward: gradients of what went into it.
void ReferenceValues::go_back(std::size_t unit, const BackwardApplication& b,
                              std::vector<Tensor>& gradients) {
  const ReferenceKind& kind = kind_of(unit);
  const Application& a = kind.applications[at(b.application)];
  const int originals = program_.kernels[at(a.kernel)].inputs;
  const auto value = [&](int t) {
    return at(t < originals ? a.inputs[at(t)] : a.outputs[at(t - originals)]);
  };
  std::vector<ContentView> inputs;
  inputs.reserve(b.adjoint.from.size() + b.adjoint.reads.size());
  for (int t : b.adjoint.from) inputs.push_back(view(gradients[value(t)]));
  for (int t : b.adjoint.reads) inputs.push_back(view(values_[unit][value(t)]));
  std::vector<std::vector<int>> results(b.adjoint.to.size());
  std::ranges::transform(b.adjoint.to, results.begin(),
                         [&](int t) { return kind.values[value(t)].dims; });
  const std::string key = draw_key(a.key, static_cast<std::int64_t>(unit), step_);
  const std::vector<Tensor> made = call(b.adjoint.kernel, inputs, key, results);
  for (std::size_t o = 0; o < made.size(); ++o) {
    add(nodes_, gradients[value(b.adjoint.to[o])], made[o]);
  }
}

/// What a kernel gives of each gradient, added up over all of them.
Tensor ReferenceValues::sum_over_gradients(int kernel, const std::string& text) {
  Tensor total;
  for (const auto& [key, gradient] : gradients_) add(nodes_, total, call(kernel, {gradient})[0]);
  name(total, text);
  return total;
}

/// What all updates take beside their own: the factor of gradients, the count of overflows.
std::vector<Tensor> ReferenceValues::update_numbers() {
  const Reference& reference = program_.reference;
  std::vector<Tensor> out;
  std::vector<Tensor> inputs;
  if (reference.norm_kernel >= 0) {
    inputs.push_back(sum_over_gradients(reference.norm_kernel, "squared norm of the gradients"));
  }
  if (!now_.numbers.empty()) inputs.push_back(whole(now_.numbers.front(), {}));
  if (reference.clip_kernel >= 0) {
    out.push_back(call(reference.clip_kernel, inputs)[0]);
    name(out.back(), reference.norm_kernel >= 0 ? "factor that limits the gradient's norm"
                                                : "factor that undoes the scale of the loss");
  }
  if (!now_.numbers.empty()) {
    out.push_back(
        sum_over_gradients(reference.overflow_kernel, "number of entries that overflowed"));
  }
  return out;
}

void ReferenceValues::adjust_numbers(const Tensor& overflows) {
  std::vector<Tensor> inputs;
  inputs.reserve(now_.numbers.size() + 1);
  for (NodeId number : now_.numbers) inputs.push_back(whole(number, {}));
  inputs.push_back(overflows);
  const std::vector<Tensor> made = call(program_.reference.adjust_kernel, inputs);
  for (std::size_t i = 0; i < made.size(); ++i) {
    now_.numbers[i] = nodes_.node_of(made[i]);
    nodes_.name(now_.numbers[i],
                program_.reference.numbers[i] + " after step " + std::to_string(step_ + 1));
  }
}

void ReferenceValues::update() {
  const Reference& reference = program_.reference;
  const std::vector<Tensor> numbers = update_numbers();
  for (const auto& [key, gradient] : gradients_) {
    const auto& [unit, parameter, none] = key;
    const int rule = kind_of(at(unit)).parameters[at(parameter)].rule;
    const UpdateRule& how = reference.rules.at(at(rule));
    const std::vector<int>& dims = gradient.dims;
    std::vector<Tensor> inputs{whole(now_.state.at(key), dims)};
    for (std::size_t s = 0; s < how.states.size(); ++s) {
      inputs.push_back(whole(now_.state.at({unit, parameter, static_cast<int>(s)}), dims));
    }
    inputs.push_back(gradient);
    inputs.insert(inputs.end(), numbers.begin(), numbers.end());
    const std::vector<Tensor> made = call(how.kernel, inputs);
    const std::string after = " after step " + std::to_string(step_ + 1);
    for (std::size_t o = 0; o < made.size(); ++o) {
      const int state = static_cast<int>(o) - 1;
      const NodeId node = nodes_.node_of(made[o]);
      now_.state[{unit, parameter, state}] = node;
      const StateRef ref{.kind = o == 0 ? StateRef::Kind::parameter : StateRef::Kind::state,
                         .unit = unit,
                         .tensor = parameter,
                         .state = std::max(state, 0)};
      if (nodes_.keeps_names()) nodes_.name(node, name_of(ref) + after);
    }
  }
  if (!now_.numbers.empty()) adjust_numbers(numbers.back());
}

}  // namespace placet
