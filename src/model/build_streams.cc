// Residual streams side by side: how they begin, become the one that mixers read, take a result
// back, and end. What is learned there is small and no cut divides it.
#include "model/build_parts.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

OperatorPlace mixing_place(std::string name) {
  return {.name = std::move(name), .region = Region::residual, .module = Module::residual};
}

std::vector<int> add_constants(UnitBuilder& unit,
                               const std::vector<StreamMixing::Constant>& constants) {
  std::vector<int> parameters;
  for (const StreamMixing::Constant& constant : constants) {
    std::vector<Dim> dims;
    dims.reserve(constant.shape.size());
    for (const std::int64_t size : constant.shape) dims.push_back(dim(Index::other, size));
    parameters.push_back(unit.parameter(constant.name, std::move(dims), 0));
  }
  return parameters;
}

int mix(UnitBuilder& unit, const std::string& name, std::vector<int> inputs, const Dim& out,
        std::vector<int> parameters) {
  const OperatorPlace place = mixing_place(name);
  const int output = unit.value(name + ".output", {out}, place.region);
  unit.add(OpKind::multiply, place, {std::move(inputs), {output}, std::move(parameters)});
  return output;
}

}  // namespace

Dim streams_dim(const Architecture& a) {
  return dim(Index::hidden, checked_multiply(a.hidden, a.streams));
}

int open_streams(UnitBuilder& unit, const Architecture& a, int stream) {
  if (a.streams == 1) return stream;
  std::vector<int> inputs{stream};
  if (!a.embedding.streams.weight.empty()) {
    OperatorPlace place = mixing_place("streams.projection");
    place.classes = bit_of(TensorClass::embedding);
    const Dim others = dim(Index::hidden, checked_multiply(a.hidden, a.streams - 1));
    inputs.push_back(unit.linear_one(place, stream,
                                     {.weights = a.embedding.streams,
                                      .out = others,
                                      .in = unit.dims_of(stream).back(),
                                      .bias_region = Region::residual}));
  }
  return mix(unit, "streams.open", std::move(inputs), streams_dim(a), {});
}

MixedStreams read_streams(UnitBuilder& unit, const StreamMixing& mixing, const std::string& prefix,
                          int streams, const Dim& hidden) {
  std::vector<int> inputs{streams};
  if (!mixing.weights.weight.empty()) {
    const std::string name = prefix + ".mixing";
    OperatorPlace norm_place = mixing_place(name + ".norm");
    norm_place.module = Module::norm;
    const int normed = unit.norm(mixing.norm, norm_place, streams, unit.dims_of(streams));
    inputs.push_back(unit.linear_one(mixing_place(name + ".weights"), normed,
                                     {.weights = mixing.weights,
                                      .out = dim(Index::other, mixing.coefficients),
                                      .in = unit.dims_of(normed).back(),
                                      .bias_region = Region::residual}));
  }
  MixedStreams mixed{.streams = streams};
  mixed.coefficients.assign(inputs.begin() + 1, inputs.end());
  mixed.read = mix(unit, prefix + ".streams_read", std::move(inputs), hidden,
                   add_constants(unit, mixing.constants));
  return mixed;
}

int return_to_streams(UnitBuilder& unit, const StreamMixing& mixing, const std::string& prefix,
                      const MixedStreams& mixed, int result) {
  std::vector<int> inputs{mixed.streams, result};
  inputs.insert(inputs.end(), mixed.coefficients.begin(), mixed.coefficients.end());
  return mix(unit, prefix + ".streams_written", std::move(inputs),
             unit.dims_of(mixed.streams).back(), add_constants(unit, mixing.returning));
}

int join_block_inputs(UnitBuilder& unit, const BlockInputs& inputs, int ids, int stream) {
  const ClassSet classes = bit_of(TensorClass::embedding);
  const Dim all = dim(Index::other, inputs.width);
  const int table = unit.parameter(inputs.tokens, {dim(Index::vocab, inputs.rows), all}, classes);
  const int rows = unit.value("block_inputs.rows", {all}, Region::parallel);
  unit.add(OpKind::embedding,
           {.name = "block_inputs", .region = Region::parallel, .module = Module::embedding},
           {{ids}, {rows}, {table}});
  OperatorPlace place = mixing_place("block_inputs.projection");
  place.module = Module::embedding;
  place.classes = classes;
  const int projected = unit.linear_one(place, stream,
                                        {.weights = inputs.projection,
                                         .out = all,
                                         .in = unit.dims_of(stream).back(),
                                         .bias_region = Region::residual});
  const Dim part = dim(Index::other, inputs.width / inputs.blocks);
  const int normed = unit.norm(inputs.norm, mixing_place("block_inputs.norm"), projected, {part},
                               {dim(Index::other, inputs.blocks)});
  return mix(unit, "block_inputs.join", {stream, rows, normed}, unit.dims_of(stream).back(), {});
}

}  // namespace placet
