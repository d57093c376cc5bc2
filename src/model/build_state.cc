// Recurrent mixers: state-space layers, gated delta nets, linear attention.
#include "model/build_parts.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

/// The streams that the projections of the input are split into.
struct Streams {
  std::vector<int> mixed;
  std::vector<int> steps;
  std::vector<int> gates;
};

Dim channels(const StateSpace& s, std::int64_t size) { return dim(Index::state, size, s.pieces); }

/// The list that a slice of a projection belongs to.
std::vector<int>& list_of(Streams& streams, StateSpace::Stream stream) {
  switch (stream) {
    case StateSpace::Stream::mixed:
      return streams.mixed;
    case StateSpace::Stream::step:
      return streams.steps;
    case StateSpace::Stream::gate:
      return streams.gates;
  }
  fail_internally("every stream has a list");
}

Streams project(UnitBuilder& unit, const StateSpace& s, int input) {
  Streams streams;
  for (std::size_t i = 0; i < s.projections.size(); ++i) {
    const StateSpace::Projection& projection = s.projections[i];
    const std::string name = "in" + std::to_string(i + 1);
    int from = input;
    if (projection.rank > 0) {
      OperatorPlace place = token_mixer("state." + name + ".down");
      place.region = Region::residual;
      from = unit.linear_one(place, input,
                             {.weights = projection.down,
                              .out = dim(Index::latent, projection.rank),
                              .in = unit.dims_of(input).back(),
                              .bias_region = Region::residual});
    }
    Contraction what{.weights = projection.names, .in = unit.dims_of(from).back()};
    std::int64_t width = 0;
    for (const StateSpace::Slice& slice : projection.slices) {
      width = checked_add(width, slice.width);
      what.parts.push_back({"state." + name + "." + std::to_string(what.parts.size() + 1),
                            channels(s, slice.width)});
    }
    what.out = channels(s, width);
    const auto outputs = unit.linear(token_mixer("state." + name), from, what);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      list_of(streams, projection.slices[k].stream).push_back(outputs[k]);
    }
  }
  return streams;
}

/// The convolution of the mixed stream at `at`.
int convolve(UnitBuilder& unit, const StateSpace& s, std::size_t at, int input) {
  if (s.kernel == 0) return input;
  const bool own = !s.convolutions.empty();
  const Weights& names = own ? s.convolutions.at(at) : s.convolution;
  const std::string number = own ? std::to_string(at + 1) : "";
  const OperatorPlace place = token_mixer("state.convolution" + number);
  const Dim width = unit.dims_of(input).back();
  std::vector<int> parameters{unit.parameter(
      names.weight, {width, dim(Index::other, 1), dim(Index::other, s.kernel)}, place.classes)};
  if (!names.bias.empty()) {
    parameters.push_back(unit.parameter(names.bias, {width}, place.classes));
  }
  const int output = unit.value("state.convolved" + number, {width}, place.region);
  unit.add(OpKind::convolution, place, {{input}, {output}, std::move(parameters)});
  unit.set_nonlinearity(s.after_convolution);
  return output;
}

/// Step sizes, input and output matrices of a selective scan, from its own input.
void select_steps(UnitBuilder& unit, const StateSpace& s, int mixed, Streams& streams) {
  if (!s.selection) return;
  const StateSpace::Selection& selection = *s.selection;
  const Dim rank = dim(Index::other, selection.rank);
  const Dim state = dim(Index::other, selection.state);
  const auto all = unit.linear(
      token_mixer("state.selection"), mixed,
      {.weights = selection.down,
       .out = dim(Index::other, checked_add(rank.size, checked_multiply(state.size, 2))),
       .in = unit.dims_of(mixed).back(),
       .parts = {{"state.rank", rank}, {"state.b", state}, {"state.c", state}}});
  const int steps =
      unit.norm(selection.rank_norm, token_mixer("state.rank_norm"), all.at(0), {rank});
  streams.steps = {
      unit.linear_one(token_mixer("state.steps"), steps,
                      {.weights = selection.up, .out = channels(s, s.inner), .in = rank}),
      unit.norm(selection.b_norm, token_mixer("state.b_norm"), all.at(1), {state}),
      unit.norm(selection.c_norm, token_mixer("state.c_norm"), all.at(2), {state})};
}

int scan(UnitBuilder& unit, const StateSpace& s, std::vector<int> inputs) {
  const OperatorPlace place = token_mixer("state.scan");
  std::vector<int> parameters;
  for (const StateSpace::Constant& constant : s.constants) {
    std::vector<Dim> dims{channels(s, constant.channels)};
    if (constant.per_channel > 1) dims.push_back(dim(Index::other, constant.per_channel));
    parameters.push_back(unit.parameter(constant.name, std::move(dims), place.classes));
  }
  const int output = unit.value("state.scanned", {channels(s, s.inner)}, place.region);
  unit.add(OpKind::scan, place, {std::move(inputs), {output}, std::move(parameters)});
  unit.set_recurrence(s.recurrence);
  return output;
}

int norm_result(UnitBuilder& unit, const StateSpace& s, int input) {
  const OperatorPlace place = token_mixer("state.gated_norm");
  const Dim whole = unit.dims_of(input).back();
  switch (s.norm_span) {
    case StateSpace::NormSpan::full:
      return unit.norm(s.norm, place, input, {whole});
    case StateSpace::NormSpan::per_group:
      return unit.norm(s.norm, place, input, {whole}, {dim(Index::state, s.pieces)});
    case StateSpace::NormSpan::shared_head:
      return unit.norm(s.norm, place, input, {dim(Index::head_size, s.inner / s.norm_heads)},
                       {dim(Index::state, s.norm_heads, s.pieces)});
  }
  fail_internally("every span of a norm is handled");
}

int gate_result(UnitBuilder& unit, const StateSpace& s, const Streams& streams, int result) {
  if (streams.gates.empty()) return result;
  const int gated = unit.gated_activation(token_mixer("state.gate"), streams.gates.front(), result);
  unit.set_nonlinearity(s.gate);
  return gated;
}

/// The mixed streams through their convolutions and the recurrence. Where there is none, another
/// stream gates what enters the convolution.
int mix_tokens(UnitBuilder& unit, const StateSpace& s, Streams streams) {
  std::vector<int>& mixed = streams.mixed;
  const auto with_steps = [&] {
    std::vector<int> inputs = mixed;
    inputs.insert(inputs.end(), streams.steps.begin(), streams.steps.end());
    return inputs;
  };
  if (s.recurrence == Recurrence::input_gate)
    return convolve(unit, s, 0, scan(unit, s, with_steps()));
  for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] = convolve(unit, s, i, mixed[i]);
  select_steps(unit, s, mixed.front(), streams);
  return scan(unit, s, with_steps());
}

}  // namespace

Mixed build_state_space(UnitBuilder& unit, const StateSpace& s, int input) {
  ensure(s.inner > 0 && s.pieces > 0, "a recurrence has channels");
  const Streams streams = project(unit, s, input);
  ensure(!streams.mixed.empty(), "a recurrence has an input");
  int result = mix_tokens(unit, s, streams);
  if (s.norm_before_gate) result = norm_result(unit, s, result);
  result = gate_result(unit, s, streams, result);
  if (!s.norm_before_gate) result = norm_result(unit, s, result);
  const Contraction output{.weights = s.output,
                           .out = unit.dims_of(input).back(),
                           .in = unit.dims_of(result).back(),
                           .bias_region = Region::residual};
  const OperatorPlace place = token_mixer("state.out");
  Mixed mixed{.value = unit.contract(place, {result}, output).front()};
  if (!output.weights.bias.empty()) mixed.bias = {place, output};
  return mixed;
}

}  // namespace placet
