#include "profile/conditions.h"

#include <algorithm>
#include <array>

#include "units/checked.h"

namespace placet {
namespace {

bool divides_experts(const AxisPlacement& axis) {
  return how_of(axis, bit_of(TensorClass::experts), std::nullopt).cut == Cut::expert;
}

/// Whether an axis has the cut that a condition names.
bool cuts(const AxisPlacement& axis, Cut cut) {
  return cut == Cut::expert ? divides_experts(axis) : axis.how.cut == cut;
}

std::int64_t degree_with(const Placement& placement, Cut cut) {
  std::int64_t degree = 1;
  for (const AxisPlacement& axis : placement.axes) {
    if (cuts(axis, cut)) degree = saturating_multiply(degree, axis.degree);
  }
  return degree;
}

std::int64_t batch_degree(const Placement& placement) {
  std::int64_t degree = 1;
  for (const AxisPlacement& axis : placement.axes) {
    const bool divides = axis.how.cut == Cut::batch || axis.how.cut == Cut::expert;
    if (divides) degree = saturating_multiply(degree, axis.degree);
  }
  return degree;
}

std::int64_t amount_of(const Amount& amount, const Job& job) {
  std::int64_t product = amount.factor.numerator();
  for (Symbol symbol : amount.symbols) {
    product = saturating_multiply(product, value_in_job(symbol, job).value_or(0));
  }
  const std::int64_t sum = saturating_add(product / amount.factor.denominator(), amount.added);
  return amount.most ? std::min(sum, *amount.most) : sum;
}

bool holds(const Comparison& comparison, const Job& job) {
  const std::int64_t left = amount_of(comparison.left, job);
  const std::int64_t right = amount_of(comparison.right, job);
  switch (comparison.relation) {
    case Comparison::Relation::not_multiple:
      return right > 0 && left % right != 0;
    case Comparison::Relation::above:
      return left > right;
  }
  return false;
}

bool shares_embedding(const Model& model) {
  return std::ranges::any_of(model.kinds, [](const UnitKind& kind) {
    return kind.role == UnitRole::head &&
           std::ranges::any_of(kind.parameters,
                               [](const Parameter& p) { return p.tied.has_value(); });
  });
}

/// Whether the model trains a tensor of the class, or none, as a condition asks; adapters are none.
bool trains_as_asked(const std::optional<bool>& asked, const Model& model, TensorClass of) {
  if (!asked) return true;
  const bool trains = std::ranges::any_of(model.kinds, [of](const UnitKind& kind) {
    return std::ranges::any_of(kind.parameters, [of](const Parameter& p) {
      return p.trainable && contains(p.classes, of) && !contains(p.classes, TensorClass::adapters);
    });
  });
  return *asked == trains;
}

bool has_adapters(const Model& model) {
  return std::ranges::any_of(model.kinds, [](const UnitKind& kind) {
    return std::ranges::any_of(kind.parameters, [](const Parameter& p) {
      return contains(p.classes, TensorClass::adapters);
    });
  });
}

std::int64_t expert_tensor_degree(const Placement& placement) {
  std::int64_t degree = 1;
  for (const AxisPlacement& axis : placement.axes) {
    const How& how = how_of(axis, bit_of(TensorClass::experts), std::nullopt);
    if (how.cut == Cut::tensor) degree = saturating_multiply(degree, axis.degree);
  }
  return degree;
}

/// Whether a rule other than the gradient moves offsets of the experts' scores.
bool offsets_choice(const Model& model) {
  return std::ranges::any_of(model.kinds, [](const UnitKind& kind) {
    return std::ranges::any_of(kind.operators, [](const Operator& op) {
      return op.kind == OpKind::router && !op.parameters.empty();
    });
  });
}

bool states_stages(const Placement& placement) {
  return std::ranges::any_of(placement.axes, [](const AxisPlacement& axis) {
    return axis.how.cut == Cut::layer && !axis.shares.empty();
  });
}

/// Whether stages are told to have different numbers of blocks.
bool uneven_stages(const Placement& placement) {
  return std::ranges::any_of(placement.axes, [](const AxisPlacement& axis) {
    const auto differs = [&](std::int64_t share) { return share != axis.shares.front(); };
    return axis.how.cut == Cut::layer && std::ranges::any_of(axis.shares, differs);
  });
}

/// Calls visit(how) for every way in which tensors see an axis.
template <class Visit>
bool any_how(const Placement& placement, Visit visit) {
  return std::ranges::any_of(placement.axes, [&](const AxisPlacement& axis) {
    return visit(axis.how) ||
           std::ranges::any_of(axis.overrides, [&](const Override& o) { return visit(o.how); });
  });
}

/// Whether the state is moved to host memory somewhere; `partly`: less than the whole of it.
bool offloads(const Placement& placement, State state, bool partly) {
  return any_how(placement, [&](const How& how) {
    const std::optional<Offload>& moved = how.offload[static_cast<std::size_t>(state)];
    const bool whole = how.modes[state] == Mode::offloaded;
    return partly ? !whole && moved && moved->fraction < Rational(1) : whole || moved.has_value();
  });
}

bool offloads_to_nvme(const Placement& placement) {
  return any_how(placement, [](const How& how) {
    return std::ranges::any_of(how.offload, [](const std::optional<Offload>& moved) {
      return moved && moved->medium == Medium::nvme;
    });
  });
}

bool divides_checkpoints(const Placement& placement) {
  return std::ranges::any_of(placement.axes, [](const AxisPlacement& axis) {
    return axis.degree > 1 && std::ranges::any_of(axis.overrides, [](const Override& o) {
             return std::holds_alternative<Checkpoints>(o.selector) &&
                    o.how.modes.activations == Mode::sharded_gather;
           });
  });
}

bool exchanges_heads(const Job& job) {
  for (std::size_t a = 0; a < job.placement.axes.size() && a < job.attention.size(); ++a) {
    const AxisPlacement& axis = job.placement.axes[a];
    const bool used = axis.how.cut == Cut::sequence && axis.degree > 1;
    if (used && job.attention[a].cuts_heads) return true;
  }
  return false;
}

/// Whether there are stages, and the schedule is none of these.
bool works_beyond(const std::vector<std::string>& schedules, const Job& job) {
  return degree_with(job.placement, Cut::layer) > 1 &&
         std::ranges::find(schedules, job.schedule.name) == schedules.end();
}

/// Whether a sequence is divided, and its exchange is none of these.
bool exchanges_beyond(const std::vector<std::string>& exchanges, const Job& job) {
  for (std::size_t a = 0; a < job.placement.axes.size() && a < job.attention.size(); ++a) {
    const AxisPlacement& axis = job.placement.axes[a];
    if (axis.how.cut != Cut::sequence || axis.degree == 1) continue;
    if (std::ranges::find(exchanges, job.attention[a].name) == exchanges.end()) return true;
  }
  return false;
}

/// Whether along some axis gathered parameters are kept for one of these times.
bool keeps_one_of(const std::vector<Keep>& keeps, const Placement& placement) {
  return std::ranges::any_of(placement.axes, [&](const AxisPlacement& axis) {
    const bool gathers = axis.how.modes.parameters == Mode::sharded_gather;
    return axis.degree > 1 && gathers && std::ranges::find(keeps, axis.how.keep) != keeps.end();
  });
}

/// An axis that divides experts, whatever else it cuts, is one of these alone where the order
/// speaks of them.
bool stand_in_order(const CutsInOrder& order, const Placement& placement) {
  const bool of_experts = order.inner == Cut::expert || order.outer == Cut::expert;
  const auto is = [&](const AxisPlacement& axis, Cut cut) {
    if (of_experts && divides_experts(axis)) return cut == Cut::expert;
    return cuts(axis, cut);
  };
  bool outer = false;
  for (const AxisPlacement& axis : placement.axes) {
    if (axis.degree == 1) continue;
    if (outer && is(axis, order.inner)) return true;
    outer = outer || is(axis, order.outer);
  }
  return false;
}

bool is_of_kind(const Recompute& recompute, RecomputeKind kind) {
  const bool selects = recompute.kind == Recompute::Kind::selective;
  switch (kind) {
    case RecomputeKind::none:
      return recompute.kind == Recompute::Kind::none;
    case RecomputeKind::full:
      return recompute.kind == Recompute::Kind::full;
    case RecomputeKind::every:
      return recompute.kind == Recompute::Kind::every;
    case RecomputeKind::first:
      return recompute.kind == Recompute::Kind::first;
    case RecomputeKind::core:
      return selects && recompute.modules == std::vector<Module>{Module::core_attention};
    case RecomputeKind::modules:
      return selects && recompute.policy.empty();
    case RecomputeKind::policy:
      return selects && !recompute.policy.empty();
  }
  return false;
}

/// The part of a condition that asks how axes stand, and what they do beside cuts and modes.
bool axes_part_holds(const When& when, bool absent, const Job& job) {
  if (!when.exchange_beyond.empty() && !exchanges_beyond(when.exchange_beyond, job)) return false;
  if (!when.keeps.empty() && keeps_one_of(when.keeps, job.placement) == absent) return false;
  return !when.order || stand_in_order(*when.order, job.placement);
}

/// The part of a condition that asks what else a placement says than cuts and modes.
bool placement_part_holds(const When& when, const Job& job) {
  const Placement& placement = job.placement;
  if (when.states_stages && *when.states_stages != states_stages(placement)) return false;
  if (when.uneven_stages && *when.uneven_stages != uneven_stages(placement)) return false;
  if (when.offloads_to_nvme && *when.offloads_to_nvme != offloads_to_nvme(placement)) return false;
  const bool absent = when.absent && when.cuts.empty() && when.states.empty();
  if (when.offloads && offloads(placement, *when.offloads, when.partly) == absent) return false;
  if (when.divides_checkpoints && *when.divides_checkpoints != divides_checkpoints(placement)) {
    return false;
  }
  if (when.exchanges_heads && *when.exchanges_heads != exchanges_heads(job)) return false;
  if (!axes_part_holds(when, absent, job)) return false;
  return when.schedule_beyond.empty() || works_beyond(when.schedule_beyond, job);
}

/// The part of a condition that asks what is computed twice.
bool recomputation_holds(const When& when, const Job& job) {
  const bool whole = recomputes_whole_units(job);
  if (when.recomputes && *when.recomputes != whole) return false;
  const bool every = job.recompute.kind == Recompute::Kind::every;
  if (when.recomputes_every && *when.recomputes_every != every) return false;
  const bool some = whole || job.recompute.kind != Recompute::Kind::none;
  if (when.recomputes_some && *when.recomputes_some != some) return false;
  const bool known = std::ranges::any_of(
      when.recompute_beyond, [&](RecomputeKind kind) { return is_of_kind(job.recompute, kind); });
  return when.recompute_beyond.empty() || !known;
}

bool formats_hold(const When& when, const Precision& formats) {
  if (when.parameters && *when.parameters != formats.parameters) return false;
  if (when.gather && *when.gather != formats.gather) return false;
  return !when.compute || *when.compute == formats.compute;
}

/// The part of a condition that asks how a step is trained.
bool training_part_holds(const When& when, const Job& job) {
  if (when.accumulates && *when.accumulates != (micro_batches_per_step(job) > 1)) return false;
  if (!formats_hold(when, job.precision)) return false;
  if (!recomputation_holds(when, job)) return false;
  if (when.clips && *when.clips != job.clips_by_global_norm) return false;
  const bool listed =
      std::ranges::find(when.optimizers, job.optimizer.name) != when.optimizers.end();
  if (!when.optimizers.empty() && !listed) return false;
  const bool drops = job.routing.kind == Routing::Kind::capacity;
  if (when.drops_tokens && *when.drops_tokens != drops) return false;
  const bool other = std::ranges::find(when.balance, job.balance) == when.balance.end();
  if (!when.balance.empty() && other) return false;
  return !when.scales_loss || *when.scales_loss == job.scales_loss_dynamically;
}

/// The part that asks what is trained.
bool model_part_holds(const When& when, const Model& model) {
  if (when.has_experts && *when.has_experts != (model.figures.experts > 0)) return false;
  if (when.shares_embedding && *when.shares_embedding != shares_embedding(model)) return false;
  if (!trains_as_asked(when.trains_output, model, TensorClass::head)) return false;
  if (!trains_as_asked(when.trains_embedding, model, TensorClass::embedding)) return false;
  if (when.has_adapters && *when.has_adapters != has_adapters(model)) return false;
  return !when.offsets_choice || *when.offsets_choice == offsets_choice(model);
}

bool job_part_holds(const When& when, const Job& job) {
  if (!training_part_holds(when, job) || !model_part_holds(when, job.model)) return false;
  if (!placement_part_holds(when, job)) return false;
  return !when.compares || holds(*when.compares, job);
}

/// Whether the part of a condition that speaks of axes speaks of this one.
bool is_meant(const When& when, const AxisPlacement& axis) {
  const bool cut =
      when.cuts.empty() || std::ranges::any_of(when.cuts, [&](Cut c) { return cuts(axis, c); });
  return cut && std::ranges::all_of(when.states, [&](const StateInModes& s) {
           return std::ranges::find(s.modes, axis.how.modes[s.state]) != s.modes.end();
         });
}

/// Product of the degrees along which a device class differs as the condition asks. Saturates: the
/// product is only compared.
std::int64_t degree_of(const When& when, const Placement& placement) {
  std::int64_t degree = 1;
  for (const AxisPlacement& axis : placement.axes) {
    if (is_meant(when, axis)) degree = saturating_multiply(degree, axis.degree);
  }
  return degree;
}

}  // namespace

namespace {

/// Symbols of the model alone.
constexpr std::array<std::pair<Symbol, std::int64_t ModelFigures::*>, 8> kModelSymbols = {{
    {Symbol::hidden, &ModelFigures::hidden},
    {Symbol::heads, &ModelFigures::heads},
    {Symbol::kv_heads, &ModelFigures::kv_heads},
    {Symbol::state_heads, &ModelFigures::state_heads},
    {Symbol::head_size, &ModelFigures::head_size},
    {Symbol::model_blocks, &ModelFigures::blocks},
    {Symbol::model_experts, &ModelFigures::experts},
    {Symbol::choices, &ModelFigures::experts_per_token},
}};

std::optional<std::int64_t> value_in_model(Symbol symbol, const ModelFigures& figures) {
  for (const auto& [known, figure] : kModelSymbols) {
    if (known == symbol) return figures.*figure;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> value_in_job(Symbol symbol, const Job& job) {
  switch (symbol) {
    case Symbol::micro_batch:
      return job.batch.micro;
    case Symbol::micro_batches:
      return micro_batches_per_step(job);
    case Symbol::tensor_degree:
      return degree_with(job.placement, Cut::tensor);
    case Symbol::devices:
      return devices_of(job.placement);
    case Symbol::whole_sequence:
      return job.batch.sequence;
    case Symbol::global_batch:
      return job.batch.global;
    case Symbol::batch_degree:
      return batch_degree(job.placement);
    case Symbol::sequence_degree:
      return degree_with(job.placement, Cut::sequence);
    case Symbol::stage_degree:
      return degree_with(job.placement, Cut::layer);
    case Symbol::expert_degree:
      return degree_with(job.placement, Cut::expert);
    case Symbol::expert_tensor_degree:
      return expert_tensor_degree(job.placement);
    case Symbol::chunks:
      return job.schedule.chunks;
    case Symbol::moment_bytes:
      return job.optimizer.states.empty() ? 0
                                          : (bits_of(job.optimizer.states.back().dtype) + 7) / 8;
    case Symbol::data_degree:
      return saturating_multiply(batch_degree(job.placement),
                                 degree_with(job.placement, Cut::sequence));
    case Symbol::hidden:
    case Symbol::heads:
    case Symbol::kv_heads:
    case Symbol::state_heads:
    case Symbol::head_size:
    case Symbol::model_blocks:
    case Symbol::model_experts:
    case Symbol::choices:
    case Symbol::sequence:
    case Symbol::residual_tokens:
    case Symbol::vocabulary:
    case Symbol::parameters:
    case Symbol::owned:
    case Symbol::largest_unit:
    case Symbol::largest_tensor:
    case Symbol::tensors:
    case Symbol::blocks:
    case Symbol::experts:
    case Symbol::moe_blocks:
    case Symbol::moe_passes:
      break;
  }
  return value_in_model(symbol, job.model.figures);
}

namespace {

bool divides_samples(const AxisPlacement& axis) {
  return axis.how.cut == Cut::batch || axis.how.cut == Cut::expert;
}

/// Samples of a micro-batch of every replica; 0: more than can be counted.
std::int64_t samples_together(const Job& job) {
  std::int64_t together = job.batch.micro;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (!divides_samples(axis)) continue;
    if (__builtin_mul_overflow(together, axis.degree, &together)) return 0;
  }
  return together;
}

}  // namespace

std::int64_t micro_batches_per_step(const Job& job) {
  const std::int64_t together = samples_together(job);
  return together < 1 ? 1 : std::max<std::int64_t>(1, job.batch.global / together);
}

std::int64_t samples_per_step(const Job& job) {
  const std::int64_t together = samples_together(job);
  const bool by_shares = std::ranges::any_of(job.placement.axes, [](const AxisPlacement& axis) {
    return divides_samples(axis) && !axis.shares.empty();
  });
  if (by_shares || together < 1 || job.batch.global % together == 0) return job.batch.global;
  return micro_batches_per_step(job) * together;
}

bool recomputes_whole_units(const Job& job) {
  switch (job.recompute.kind) {
    case Recompute::Kind::full:
    case Recompute::Kind::every:
    case Recompute::Kind::first:
    case Recompute::Kind::uniform:
      return true;
    case Recompute::Kind::none:
    case Recompute::Kind::selective:
      break;
  }
  return std::ranges::any_of(job.placement.axes, [](const AxisPlacement& axis) {
    return axis.how.modes.activations == Mode::materialized;
  });
}

bool holds(const When& when, const Job& job, const StageFacts& stage) {
  if (when.first_stage && *when.first_stage != stage.first) return false;
  if (when.last_stage && *when.last_stage != stage.last) return false;
  if (!job_part_holds(when, job)) return false;
  if (when.cuts.empty() && when.states.empty()) return true;
  return (degree_of(when, job.placement) > when.degree_above) != when.absent;
}

namespace {

/// What a model is, and degrees of axes.
constexpr std::array kChosenFirst{Symbol::hidden,
                                  Symbol::heads,
                                  Symbol::kv_heads,
                                  Symbol::state_heads,
                                  Symbol::head_size,
                                  Symbol::model_blocks,
                                  Symbol::model_experts,
                                  Symbol::choices,
                                  Symbol::whole_sequence,
                                  Symbol::devices,
                                  Symbol::batch_degree,
                                  Symbol::data_degree,
                                  Symbol::tensor_degree,
                                  Symbol::sequence_degree,
                                  Symbol::stage_degree,
                                  Symbol::expert_degree,
                                  Symbol::expert_tensor_degree,
                                  Symbol::moment_bytes};

JobParts parts_of(Symbol symbol) {
  if (std::ranges::find(kChosenFirst, symbol) != kChosenFirst.end()) return 0;
  if (symbol == Symbol::chunks) return bit_of(JobPart::stages);
  const bool of_step = symbol == Symbol::micro_batch || symbol == Symbol::micro_batches ||
                       symbol == Symbol::global_batch;
  return of_step ? bit_of(JobPart::micro_batches) : kAllParts;
}

/// Whether it asks how states live along axes that have words of states: all but those that cut
/// layers or tensors. How many samples an axis cuts is chosen with its states.
bool asks_for_modes(const When& when) {
  if (when.cuts.empty()) return !when.states.empty();
  return std::ranges::any_of(when.cuts, [&](Cut cut) {
    const bool has_words_of_states = cut == Cut::sequence || cut == Cut::expert;
    return cut == Cut::batch || (has_words_of_states && !when.states.empty());
  });
}

/// What a condition asks of the model, of how it is trained, and of the degrees of axes.
When asked_first(const When& when) {
  return {.cuts = when.cuts,
          .degree_above = when.degree_above,
          .absent = when.absent,
          .states = when.states,
          .compute = when.compute,
          .parameters = when.parameters,
          .gather = when.gather,
          .clips = when.clips,
          .scales_loss = when.scales_loss,
          .has_experts = when.has_experts,
          .shares_embedding = when.shares_embedding,
          .trains_output = when.trains_output,
          .trains_embedding = when.trains_embedding,
          .has_adapters = when.has_adapters,
          .offsets_choice = when.offsets_choice,
          .drops_tokens = when.drops_tokens,
          .balance = when.balance,
          .optimizers = when.optimizers};
}

JobParts parts_of(const Comparison& comparison) {
  JobParts parts = 0;
  for (const Amount* amount : {&comparison.left, &comparison.right}) {
    for (const Symbol symbol : amount->symbols) parts |= parts_of(symbol);
  }
  return parts;
}

/// Takes what asks for one part after the other; what then is left is not known here, and may ask
/// for any.
JobParts parts_asked(const When& when) {
  const When first = asked_first(when);
  When known = first;
  JobParts parts = asks_for_modes(when) ? bit_of(JobPart::states) : JobParts{0};
  const auto take = [&](JobPart part, auto... fields) {
    const bool asked = ((when.*fields != first.*fields) || ...);
    if (asked) parts |= bit_of(part);
    ((known.*fields = when.*fields), ...);
  };
  take(JobPart::states, &When::offloads, &When::partly, &When::divides_checkpoints,
       &When::offloads_to_nvme, &When::keeps, &When::order);
  take(JobPart::micro_batches, &When::accumulates);
  take(JobPart::stages, &When::states_stages, &When::uneven_stages, &When::schedule_beyond,
       &When::first_stage, &When::last_stage);
  take(JobPart::exchange, &When::exchanges_heads, &When::exchange_beyond);
  // Whole units are recomputed by the mode of their activations too.
  take(JobPart::recomputation, &When::recomputes, &When::recomputes_some, &When::recomputes_every,
       &When::recompute_beyond);
  if (when.compares) parts |= parts_of(*when.compares);
  known.compares = when.compares;
  return known == when ? parts : kAllParts;
}

}  // namespace

JobParts parts_asked(const std::vector<When>& when) {
  JobParts parts = 0;
  for (const When& one : when) parts |= parts_asked(one);
  return parts;
}

bool all_hold(const std::vector<When>& when, const Job& job, const StageFacts& stage) {
  return std::ranges::all_of(when, [&](const When& one) { return holds(one, job, stage); });
}

}  // namespace placet
