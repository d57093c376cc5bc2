#include "model/unit_builder.h"

#include <algorithm>

#include "model/moments.h"
#include "units/error.h"

namespace placet {
namespace {

std::vector<Dim> with_tokens(std::vector<Dim> dims) {
  dims.insert(dims.begin(), {samples(), tokens()});
  return dims;
}

}  // namespace

UnitBuilder::UnitBuilder(UnitRole role, std::vector<Dim> input, ValueType input_type) {
  kind_.role = role;
  kind_.parameters.reserve(24);
  kind_.values.reserve(80);
  kind_.operators.reserve(40);
  value("input", std::move(input), Region::residual, input_type);
}

int UnitBuilder::value(std::string name, std::vector<Dim> dims, Region region, ValueType type) {
  kind_.values.push_back({.name = std::move(name),
                          .dims = with_tokens(std::move(dims)),
                          .type = type,
                          .region = region});
  return static_cast<int>(kind_.values.size()) - 1;
}

int UnitBuilder::parameter(std::string name, std::vector<Dim> dims, ClassSet classes) {
  return parameter({.name = std::move(name), .dims = std::move(dims), .classes = classes});
}

int UnitBuilder::parameter(Parameter p) {
  kind_.parameters.push_back(std::move(p));
  return static_cast<int>(kind_.parameters.size()) - 1;
}

void UnitBuilder::add(OpKind kind, const OperatorPlace& place, Tensors tensors) {
  kind_.operators.push_back({.kind = kind,
                             .name = place.name,
                             .region = place.region,
                             .module = place.module,
                             .inputs = std::move(tensors.inputs),
                             .outputs = std::move(tensors.outputs),
                             .parameters = std::move(tensors.parameters),
                             .internals = std::move(tensors.internals)});
}

int UnitBuilder::norm(const Norm& norm, OperatorPlace place, int input,
                      const std::vector<Dim>& weight, std::vector<Dim> statistics) {
  if (norm.kind == NormKind::none) return input;
  place.classes |= bit_of(TensorClass::norms);
  std::vector<int> parameters;
  for (const std::string* name : {&norm.names.weight, &norm.names.bias}) {
    if (!name->empty()) parameters.push_back(parameter(*name, weight, place.classes));
  }
  const std::vector<Dim> dims = dims_of(input);
  const Region region = place.region;
  const auto inside = [&](std::string_view what, std::vector<Dim> shape,
                          ValueType type = ValueType::fp32) {
    return value(place.name + "." + std::string(what), std::move(shape), region, type);
  };
  // A layer norm has a mean beside the reciprocal deviation.
  if (norm.kind == NormKind::layer) statistics.push_back(dim(Index::other, kMoments));
  const int statistics_value = inside("statistics", std::move(statistics));
  const int input_fp32 = inside("input_fp32", dims);
  const int normalized = inside("normalized", dims, ValueType::compute);
  const int normalized_fp32 = inside("normalized_fp32", dims);
  const int output = value(place.name + ".output", dims, region);
  add(OpKind::norm, place,
      {{input},
       {output},
       std::move(parameters),
       {statistics_value, input_fp32, normalized, normalized_fp32}});
  return output;
}

std::vector<Dim> segments_of(const Contraction& what) {
  std::vector<Dim> segments;
  bool differ = false;
  for (const OutputPart& part : what.parts) {
    segments.push_back(part.dim);
    differ = differ || part.dim.index != what.parts.front().dim.index;
  }
  if (!differ) segments.clear();
  return segments;
}

std::vector<int> UnitBuilder::contract(const OperatorPlace& place, std::vector<int> inputs,
                                       const Contraction& what) {
  std::vector<Dim> weight = what.experts;
  if (what.order == WeightOrder::out_in) {
    weight.insert(weight.end(), {what.out, what.in});
  } else {
    weight.insert(weight.end(), {what.in, what.out});
  }
  const int p = parameter({.name = what.weights.weight,
                           .dims = std::move(weight),
                           .segments = segments_of(what),
                           .classes = place.classes,
                           .inputs_first = what.order == WeightOrder::in_out});
  std::vector<Dim> leading = dims_of(inputs.front());
  leading.pop_back();  // the contracted dim is the last one
  std::vector<int> outputs;
  const auto return_part = [&](std::string name, const Dim& last) {
    std::vector<Dim> dims = leading;
    dims.push_back(last);
    outputs.push_back(value(std::move(name), std::move(dims), place.region));
  };
  for (const OutputPart& part : what.parts) return_part(part.name, part.dim);
  if (what.parts.empty()) return_part(place.name, what.out);
  const OpKind kind = what.experts.empty() ? OpKind::linear : OpKind::grouped_linear;
  add(kind, place, {std::move(inputs), outputs, {p}});
  return outputs;
}

std::vector<int> UnitBuilder::bias(OperatorPlace place, const std::vector<int>& inputs,
                                   const Contraction& what) {
  if (what.weights.bias.empty()) return inputs;
  place.region = what.bias_region;
  std::vector<Dim> dims = what.experts;
  dims.push_back(what.out);
  const int p = parameter({.name = what.weights.bias,
                           .dims = std::move(dims),
                           .segments = segments_of(what),
                           .classes = place.classes});
  std::vector<int> outputs;
  outputs.reserve(inputs.size());
  for (const int input : inputs) {
    outputs.push_back(value(at(input).name + "_biased", dims_of(input), place.region));
  }
  place.name += ".bias";
  add(OpKind::bias, place, {inputs, outputs, {p}});
  return outputs;
}

std::vector<int> UnitBuilder::linear(const OperatorPlace& place, int input,
                                     const Contraction& what) {
  return bias(place, contract(place, {input}, what), what);
}

int UnitBuilder::linear_one(const OperatorPlace& place, int input, const Contraction& what) {
  return linear(place, input, what).front();
}

int UnitBuilder::elementwise(OpKind kind, const OperatorPlace& place, std::vector<int> inputs,
                             std::string_view result) {
  const int output = value(std::string(result), dims_of(inputs.front()), place.region);
  add(kind, place, {std::move(inputs), {output}});
  return output;
}

int UnitBuilder::gated_activation(const OperatorPlace& place, int gate, int up) {
  const int activated = value(place.name + ".activated", dims_of(gate), place.region);
  const int output = value(place.name + ".output", dims_of(up), place.region);
  add(OpKind::gated_activation, place, {{gate, up}, {output}, {}, {activated}});
  return output;
}

int UnitBuilder::dropout(const std::string& name, int input, double probability, Module module) {
  if (probability == 0) return input;
  const OperatorPlace place{.name = name, .region = Region::residual, .module = module};
  const int mask = value(name + ".mask", dims_of(input), place.region, ValueType::mask);
  const int output = value(name + ".output", dims_of(input), place.region);
  add(OpKind::dropout, place, {{input}, {output}, {}, {mask}});
  return output;
}

int UnitBuilder::residual_add(const std::string& name, std::vector<int> inputs, Region region,
                              Module module) {
  const OperatorPlace place{.name = name, .region = region, .module = module};
  return elementwise(OpKind::residual_add, place, std::move(inputs), name + ".output");
}

std::vector<Dim> UnitBuilder::dims_of(int value) const {
  const std::vector<Dim>& dims = at(value).dims;
  return {dims.begin() + 2, dims.end()};
}

}  // namespace placet
