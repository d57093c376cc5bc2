// Dense MLPs and mixtures of experts.
#include "model/build_parts.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

/// Where an MLP stands: its name, module and class, and the experts' dim if it is a stack of them.
struct MlpPlace {
  std::string prefix;
  Module module = Module::mlp;
  Module activation = Module::mlp_activation;
  ClassSet classes = 0;
  std::vector<Dim> experts;
};

OperatorPlace parallel(const MlpPlace& at, std::string name, Module module) {
  return {.name = at.prefix + "." + std::move(name),
          .region = Region::parallel,
          .module = module,
          .classes = at.classes};
}

int activate_fused(UnitBuilder& unit, const Mlp& mlp, const MlpPlace& at, int input) {
  const Dim width = dim(Index::ffn, mlp.width);
  const auto both =
      unit.linear(parallel(at, "gate_up", at.module), input,
                  {.weights = mlp.gate_up,
                   .out = dim(Index::ffn, checked_multiply(mlp.width, 2), mlp.width),
                   .in = unit.dims_of(input).back(),
                   .parts = {{at.prefix + ".gate", width}, {at.prefix + ".up", width}},
                   .order = mlp.order,
                   .experts = at.experts});
  return unit.gated_activation(parallel(at, "activation", at.activation), both.at(0), both.at(1));
}

int activate(UnitBuilder& unit, const Mlp& mlp, const MlpPlace& at, int input) {
  if (!mlp.gate_up.weight.empty()) return activate_fused(unit, mlp, at, input);
  const auto project = [&](std::string name, const Weights& weights) {
    return unit.linear_one(parallel(at, std::move(name), at.module), input,
                           {.weights = weights,
                            .out = dim(Index::ffn, mlp.width),
                            .in = unit.dims_of(input).back(),
                            .order = mlp.order,
                            .experts = at.experts});
  };
  const OperatorPlace activation = parallel(at, "activation", at.activation);
  if (!mlp.gated) {
    return unit.elementwise(OpKind::activation, activation, {project("up", mlp.up)},
                            at.prefix + ".activated");
  }
  const int gate = project("gate", mlp.gate);
  const int up = project("up", mlp.up);
  return unit.gated_activation(activation, gate, up);
}

Mixed build(UnitBuilder& unit, const Mlp& mlp, const MlpPlace& at, int input) {
  ensure(mlp.width > 0, "an MLP has a width");
  const int inner = activate(unit, mlp, at, input);
  const Contraction down{.weights = mlp.down,
                         .out = unit.dims_of(input).back(),
                         .in = unit.dims_of(inner).back(),
                         .order = mlp.order,
                         .bias_region = Region::residual,
                         .experts = at.experts};
  const OperatorPlace place = parallel(at, "down", at.module);
  Mixed result{.value = unit.contract(place, {inner}, down).front()};
  if (!down.weights.bias.empty()) result.bias = {place, down};
  return result;
}

int apply_bias(UnitBuilder& unit, const Mixed& mixed) {
  if (!mixed.bias) return mixed.value;
  return unit.bias(mixed.bias->first, {mixed.value}, mixed.bias->second).front();
}

struct Routes {
  int weights = 0;
  int choices = 0;
};

Routes route(UnitBuilder& unit, const Moe& moe, int input, int stream) {
  if (moe.router_norm) {
    const OperatorPlace norm_place{.name = "moe.router_norm",
                                   .region = Region::residual,
                                   .module = Module::moe,
                                   .classes = bit_of(TensorClass::router)};
    input = unit.norm(*moe.router_norm, norm_place, stream, unit.dims_of(stream));
  }
  const Dim scores = dim(Index::other, moe.experts);
  const Dim choice = dim(Index::choice, moe.experts_per_token);
  OperatorPlace place{.name = "moe.router_logits",
                      .region = Region::residual,
                      .module = Module::moe,
                      .classes = bit_of(TensorClass::router)};
  const int logits = unit.linear_one(place, input,
                                     {.weights = moe.router,
                                      .out = scores,
                                      .in = unit.dims_of(input).back(),
                                      .bias_region = Region::residual});
  std::vector<int> parameters;
  if (!moe.correction.empty()) {
    parameters.push_back(unit.parameter({.name = moe.correction,
                                         .dims = {scores},
                                         .classes = place.classes,
                                         .trainable = false,
                                         .dtype = Dtype::fp32}));
  }
  if (!moe.expert_scale.empty()) {
    parameters.push_back(unit.parameter(moe.expert_scale, {scores}, place.classes));
  }
  place.name = "moe.router";
  const int probabilities =
      unit.value("moe.router.probabilities", {scores}, place.region, ValueType::fp32);
  const Routes routes{
      .weights = unit.value("moe.router.weights", {choice}, place.region),
      .choices = unit.value("moe.router.choices", {choice}, place.region, ValueType::int64)};
  unit.add(OpKind::router, place,
           {{logits}, {routes.weights, routes.choices}, std::move(parameters), {probabilities}});
  return routes;
}

/// Between the stream and the latent that experts work on: small, and not cut.
int map_latent(UnitBuilder& unit, std::string name, const Weights& names, const Dim& out,
               int input) {
  return unit.linear_one({.name = std::move(name),
                          .region = Region::residual,
                          .module = Module::moe,
                          .classes = bit_of(TensorClass::router)},
                         input,
                         {.weights = names,
                          .out = out,
                          .in = unit.dims_of(input).back(),
                          .bias_region = Region::residual});
}

/// Experts whose last bias must be added to whole values leave the parallel region with it; the
/// weighted sum then follows on the residual stream.
int build_experts(UnitBuilder& unit, const Moe& moe, int input, const Routes& routes) {
  const std::vector<Dim> stream = unit.dims_of(input);
  if (moe.latent > 0) {
    input =
        map_latent(unit, "moe.latent_down", moe.latent_down, dim(Index::latent, moe.latent), input);
  }
  const std::vector<Dim> hidden = unit.dims_of(input);
  const MlpPlace at{.prefix = "moe.experts",
                    .module = Module::moe,
                    .activation = Module::moe_activation,
                    .classes = bit_of(TensorClass::experts),
                    .experts = {dim(Index::expert, moe.experts)}};
  const OperatorPlace dispatch{
      .name = "moe.dispatch", .region = Region::parallel, .module = Module::moe};
  const int sent =
      unit.value("moe.dispatched", {dim(Index::choice, moe.experts_per_token), hidden.front()},
                 dispatch.region);
  unit.add(OpKind::dispatch, dispatch, {{input, routes.choices}, {sent}});
  const int returned = apply_bias(unit, build(unit, moe.expert, at, sent));
  const OperatorPlace combine{
      .name = "moe.combine", .region = unit.region_of(returned), .module = Module::moe};
  const int combined = unit.value("moe.combined", hidden, combine.region);
  unit.add(OpKind::combine, combine, {{returned, routes.weights}, {combined}});
  if (moe.latent == 0) return combined;
  const int normed = unit.norm(moe.latent_norm,
                               {.name = "moe.latent_norm",
                                .region = Region::residual,
                                .module = Module::moe,
                                .classes = bit_of(TensorClass::router)},
                               combined, hidden);
  return map_latent(unit, "moe.latent_up", moe.latent_up, stream.back(), normed);
}

int build_shared(UnitBuilder& unit, const Moe& moe, int input) {
  const MlpPlace at{.prefix = "shared_expert",
                    .module = Module::shared_expert,
                    .activation = Module::shared_expert,
                    .classes = bit_of(TensorClass::shared_experts)};
  const int result = apply_bias(unit, build(unit, *moe.shared, at, input));
  if (moe.shared_gate.weight.empty()) return result;
  const auto place = [](std::string name) {
    return OperatorPlace{.name = "shared_expert." + std::move(name),
                         .region = Region::residual,
                         .module = Module::shared_expert,
                         .classes = static_cast<ClassSet>(bit_of(TensorClass::shared_experts) |
                                                          bit_of(TensorClass::router))};
  };
  const int score = unit.linear_one(place("gate_logit"), input,
                                    {.weights = moe.shared_gate,
                                     .out = dim(Index::other, 1),
                                     .in = unit.dims_of(input).back(),
                                     .bias_region = Region::residual});
  const int open = unit.elementwise(OpKind::activation, place("gate_activation"), {score},
                                    "shared_expert.gate_activated");
  return unit.elementwise(OpKind::multiply, place("gate_multiply"), {result, open},
                          "shared_expert.gated");
}

}  // namespace

Mixed build_mlp(UnitBuilder& unit, const Mlp& mlp, int input) {
  const MlpPlace at{.prefix = "mlp", .module = Module::mlp, .classes = bit_of(TensorClass::ffn)};
  return build(unit, mlp, at, input);
}

Mixed build_projection(UnitBuilder& unit, const Projection& projection, int input) {
  const bool attention = projection.replaces_attention;
  const Dim hidden = unit.dims_of(input).back();
  OperatorPlace place{.name = "projection",
                      .region = Region::residual,
                      .module = attention ? Module::attention : Module::mlp,
                      .classes = bit_of(attention ? TensorClass::attention : TensorClass::ffn)};
  const bool direct = projection.rank == 0;
  const Dim out = direct ? hidden : dim(Index::latent, projection.rank);
  const int first = unit.linear_one(
      place, input,
      {.weights = projection.names, .out = out, .in = hidden, .bias_region = Region::residual});
  if (direct) return {.value = first};
  place.name += ".back";
  return {
      .value = unit.linear_one(
          place, first,
          {.weights = projection.back, .out = hidden, .in = out, .bias_region = Region::residual})};
}

Mixed build_moe(UnitBuilder& unit, const Moe& moe, int input, int stream) {
  ensure(moe.experts >= moe.experts_per_token && moe.experts_per_token > 0,
         "a token visits some of the experts");
  const Routes routes = route(unit, moe, input, stream);
  const int routed = build_experts(unit, moe, input, routes);
  if (!moe.shared) return {.value = routed};
  const int shared = build_shared(unit, moe, input);
  return {.value =
              unit.residual_add("moe.add_shared", {routed, shared}, Region::residual, Module::moe)};
}

}  // namespace placet
