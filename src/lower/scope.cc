#include "lower/scope.h"

#include <algorithm>
#include <string>
#include <variant>

#include "lower/mesh.h"
#include "units/error.h"

namespace placet {

namespace {

constexpr const char* kPlacement = "--placement";

void require_modes(const std::string& axis, const How& how) {
  if (how.modes.gradients == Mode::materialized) {
    refuse(kPlacement, axis, "uses gradients up inside backward (G=M): no step program yet",
           "gradients R, S or O");
  }
}

void require_offload(const std::string& axis, const How& how) {
  for (std::size_t s = 0; s < how.offload.size(); ++s) {
    if (!how.offload[s]) continue;
    const State state = static_cast<State>(s);
    const std::string words = axis + ": offload(" + std::string(name_of(state)) + ")";
    if (state != State::activations || how.offload[s]->fraction == Rational(1)) continue;
    refuse(kPlacement, words, "moves a part of the state only: no step program yet",
           "all of it, or none");
  }
}

bool updates_on_host(const How& how) {
  return how.modes.optimizer == Mode::offloaded ||
         how.offload[static_cast<std::size_t>(State::optimizer)].has_value();
}

/// The update runs where its state is, and parameters are gathered when they are used.
void require_options(const std::string& axis, const How& how) {
  if (how.update && (*how.update == Medium::host) != updates_on_host(how)) {
    refuse(kPlacement, axis + ": update(" + (updates_on_host(how) ? "device" : "host") + ")",
           "is not where the optimizer state rests: no step program yet",
           std::string("update(") + (updates_on_host(how) ? "host" : "device") + ")");
  }
  if (how.prefetch.value_or(0) > 0) {
    refuse(kPlacement, axis + ": prefetch(" + std::to_string(*how.prefetch) + ")",
           "gathers units ahead of their use: no step program yet", "prefetch(0), or none said");
  }
}

void require_how(const std::string& axis, const How& how) {
  require_modes(axis, how);
  require_offload(axis, how);
  require_options(axis, how);
}

/// Experts may be cut otherwise than the rest, other classes in the modes of their states only.
void require_override(const std::string& axis, const How& own, const Override& other) {
  if (std::holds_alternative<BlockRange>(other.selector)) {
    refuse(kPlacement, axis, "treats some blocks apart: no step program yet",
           "one placement for all blocks");
  }
  if (std::holds_alternative<Checkpoints>(other.selector)) {
    require_offload(axis + ": checkpoints", other.how);
    const Mode mode = other.how.modes.activations;
    const bool parts = mode == Mode::sharded_gather && own.cut == Cut::tensor;
    if (mode == Mode::replicated || mode == Mode::offloaded || parts) return;
    refuse(kPlacement, axis + ": checkpoints", "are kept otherwise: no step program yet",
           "checkpoints whole, in parts along a tensor axis (S*) or in host memory");
  }
  require_how(axis, other.how);
  const TensorClass tensors = std::get<TensorClass>(other.selector);
  const bool same =
      other.how.cut == own.cut && other.how.modes.activations == own.modes.activations;
  const bool split = own.cut == Cut::tensor && own.modes.activations == Mode::sharded_gather;
  const bool among_experts = other.how.cut == Cut::expert || other.how.cut == Cut::tensor ||
                             other.how.cut == own.cut || (other.how.cut == Cut::batch && split);
  if (same || (tensors == TensorClass::experts && among_experts)) return;
  refuse(kPlacement, axis + ": " + std::string(name_of(tensors)),
         "are cut otherwise than the rest: no step program yet",
         "experts cut by experts or as tensors, other classes as the axis is");
}

void require_optimizer(const Job& job) {
  for (const UnitKind& kind : job.model.kinds) {
    for (const Parameter& parameter : kind.parameters) {
      const UpdateRegion region = region_of(job.optimizer, parameter);
      const bool known = region == UpdateRegion::element || region == UpdateRegion::matrix;
      if (!parameter.trainable || known) continue;
      refuse("--optimizer", job.optimizer.name,
             "updates " + parameter.name +
                 " in pieces (blocks, or rows and columns): no step program yet",
             "optimizers that update each element by itself, or whole matrices: adamw, lion, muon, "
             "sgd");
    }
  }
}

/// Devices of all tensor axes that cut an index, if one of several cuts both sides of matrices;
/// else 1.
std::int64_t devices_that_gather(const Job& job, Index index) {
  std::int64_t devices = 1;
  int axes = 0;
  bool gathers = false;
  for (const AxisPlacement& axis : job.placement.axes) {
    const IndexSet indices = axis.how.tensor_indices;
    if (axis.how.cut != Cut::tensor || axis.degree == 1 || !contains(indices, index)) continue;
    devices *= axis.degree;
    ++axes;
    gathers = gathers || (contains(indices, Index::hidden) && (indices & kTensorIndices) != 0);
  }
  return gathers && axes > 1 ? devices : 1;
}

/// What comes together along one of several axes is what the others leave of it, if its parts are
/// as long.
void require_even_columns(const Job& job, const Dim& dim, const std::string& tensor) {
  const std::int64_t devices = devices_that_gather(job, dim.index);
  if (dim.index == Index::vocab || dim.parts % devices == 0) return;
  if (dim.index == Index::kv_head && devices % dim.parts == 0) return;
  refuse(kPlacement, std::to_string(devices) + " devices",
         "cut a dim of " + std::to_string(dim.parts) + " (" + std::string(name_of(dim.index)) +
             ") of " + tensor +
             " unevenly, where an axis cuts both sides of matrices beside another one: no step "
             "program yet",
         "degrees whose product divides it");
}

void require_even_columns(const Job& job, const Parameter& parameter) {
  for (const Dim& dim : parameter.dims) require_even_columns(job, dim, parameter.name);
  for (const Dim& dim : parameter.segments) require_even_columns(job, dim, parameter.name);
}

bool moves(const ExchangeStep& step, AttentionTensor first, AttentionTensor second) {
  return step.together && step.tensors == std::vector{first, second};
}

/// Round a ring go keys and values together, and both their gradients.
void require_ring(const std::string& axis, const AttentionExchange& exchange) {
  const bool known = std::ranges::all_of(exchange.steps, [](const ExchangeStep& step) {
    using Movement = ExchangeStep::Movement;
    if (step.movement == Movement::pieces) {
      return moves(step, AttentionTensor::keys, AttentionTensor::values);
    }
    return step.movement == Movement::pieces_sum && step.in_backward &&
           moves(step, AttentionTensor::keys_gradient, AttentionTensor::values_gradient);
  });
  if (known) return;
  refuse(kPlacement, axis,
         "passes other tensors round a ring than keys and values: no step program yet",
         "keys and values together, and in backward both their gradients");
}

/// Refuses two axes together, where there is the first.
void refuse_beside(const std::string& first, const std::string& second, const char* problem,
                   const char* allowed) {
  if (!first.empty()) refuse(kPlacement, first + " " + second, problem, allowed);
}

bool has_sinks(const UnitKind& kind) {
  return std::ranges::any_of(kind.operators, [](const Operator& op) {
    return op.kind == OpKind::attention && !op.parameters.empty();
  });
}

/// One ring at a time, beside axes that exchange heads and divide the tokens of its parts.
void require_attention(const Job& job) {
  std::string ring;
  std::string whole;  // an axis along which keys are gathered
  std::string heads;  // one along which heads are exchanged
  for (std::size_t a = 0; a < job.attention.size() && a < job.placement.axes.size(); ++a) {
    const AxisPlacement& axis = job.placement.axes[a];
    if (axis.how.cut != Cut::sequence || axis.degree < 2) continue;
    const std::string name(axis.axis.text());
    if (!goes_round(job, a)) {
      (exchanges_heads(job, a) ? heads : whole) = name;
      continue;
    }
    refuse_beside(heads, name,
                  "exchange heads along an axis outside of that of a ring: no step program yet",
                  "the ring first, then the axis that exchanges heads");
    require_ring(name, job.attention[a]);
    refuse_beside(ring, name,
                  "pass keys and values round a ring of several axes: no step program yet",
                  "one axis for the ring, beside axes that exchange heads");
    ring = name;
  }
  const bool sinks = std::ranges::any_of(job.model.kinds, has_sinks);
  if (sinks && !heads.empty()) {
    refuse(kPlacement, heads, "exchanges heads of attention with sinks: no step program yet",
           "keys gathered or round a ring");
  }
  if (ring.empty()) return;
  refuse_beside(whole, ring,
                "pass keys and values round a ring and gather them: no step program yet",
                "one of both, beside axes that exchange heads");
}

void require_training(const Job& job) {
  if (job.recompute.kind == Recompute::Kind::uniform) {
    refuse("--recompute", "uniform=" + std::to_string(job.recompute.count),
           "makes several blocks again together: no step program yet", "full, every=N or first=N");
  }
  if (job.recompute.kind == Recompute::Kind::selective && !job.recompute.policy.empty()) {
    refuse("--recompute", job.recompute.policy, "is an engine's own policy: no step program yet",
           "none, full, selective=MODULES, every=N or first=N");
  }
  if (job.profile.quantised_gathers || job.profile.quantised_reductions) {
    refuse("--engine", job.profile.name + "@" + job.profile.version,
           "quantises what it sends, which is another training: no step program",
           "an engine that sends numbers as they are");
  }
  if (job.profile.drops_tokens && job.model.figures.experts > 0) {
    refuse(
        "--engine", job.profile.name + "@" + job.profile.version,
        "drops tokens past an expert's capacity, by their order on each device, which is another "
        "training: no step program",
        "an engine that drops no token, or the strategy local-capacity, which is judged as such");
  }
  if (job.routing.kind == Routing::Kind::capacity) {
    refuse("--routing", "capacity", "drops tokens past an expert's capacity: no step program yet",
           "routing that drops no token: balanced, expected=SKEW or worst");
  }
}

}  // namespace

void require_lowerable(const Job& job) {
  for (const AxisPlacement& axis : job.placement.axes) {
    const std::string name(axis.axis.text());
    require_how(name, axis.how);
    for (const Override& other : axis.overrides) require_override(name, axis.how, other);
  }
  for (const UnitKind& kind : job.model.kinds) {
    for (const Parameter& parameter : kind.parameters) require_even_columns(job, parameter);
  }
  require_attention(job);
  require_optimizer(job);
  require_training(job);
}

}  // namespace placet
