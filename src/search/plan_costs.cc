#include "search/plan_costs.h"

#include <algorithm>
#include <span>

#include "derive/memory.h"
#include "layout/realised.h"
#include "units/at.h"

namespace placet {
namespace {

// Orders of work longer than this take longer to work through than what their bound saves.
constexpr std::int64_t kLongestFlow = 50'000;
// Stands for any count of a counted recomputation where flows are kept.
constexpr std::int32_t kAnyCount = -1;
// Above so many samples at once, figures of a shape may pass 64 bits.
constexpr std::int64_t kMostSamples = 1 << 16;

bool may_recompute(UnitRole role) { return role == UnitRole::block || role == UnitRole::mtp; }

/// Whether what is recomputed of a recomputed unit is the same.
bool are_same(const Recompute& a, const Recompute& b) {
  const auto whole = [](const Recompute& r) {
    return r.kind == Recompute::Kind::full || r.kind == Recompute::Kind::every ||
           r.kind == Recompute::Kind::first || r.kind == Recompute::Kind::uniform;
  };
  return (whole(a) && whole(b)) || a == b;
}

/// Whether a device may have to wait in the middle of its work, or the order leaves no drain.
bool is_worth_a_flow(const PipelineShape& pipeline, std::int64_t micro_batches) {
  if (pipeline.devices.size() == 1) return false;
  const Schedule& schedule = pipeline.schedule;
  if (schedule.hosting == Hosting::single && !splits_backward(schedule.order)) return false;
  const auto pieces = static_cast<std::int64_t>(pipeline.devices.size()) * schedule.chunks * 3;
  return pieces * micro_batches <= kLongestFlow;
}

/// By word of a sequence axis: the first one that says the same but for how attention is exchanged,
/// which is nothing to the states.
std::vector<std::int16_t> words_with_the_same_states(const Choices& choices) {
  const Choices::Role& own = choices.roles[at(AxisRole::sequence)];
  const std::size_t each = own.states * choices.offloads.size();
  std::vector<AxisPlacement> axes;
  for (const AxisWord& word : own.table) {
    axes.push_back(word.axis);
    axes.back().attention = std::nullopt;
  }
  std::vector<std::int16_t> out;
  for (std::size_t w = 0; w < own.words.size(); ++w) {
    const auto words = std::span(axes);
    std::size_t first = 0;
    while (!std::ranges::equal(words.subspan(first * each, each), words.subspan(w * each, each))) {
      ++first;
    }
    out.push_back(static_cast<std::int16_t>(first));
  }
  return out;
}

}  // namespace

PlanCosts::PlanCosts(const PlanSpace& space)
    : space_(space),
      facts_(bound_facts(space.base())),
      asks_micro_batches_(asks_micro_batches(space.base())),
      units_(space.costed_kinds(), 0),
      benches_([&space] { return Workbench(space); }) {
  for (const Unit& unit : space.base().model.units) {
    ++units_[at(space.costed_kind(unit.kind, space.anywhere()))];
  }
  attention_like_ = words_with_the_same_states(space.choices());
}

PlanCosts::WorkKey PlanCosts::key_of(const WorkShape& shape) {
  return {shape.degrees, shape.attention,   shape.expert,
          shape.tensor,  shape.micro_batch, shape.accumulates};
}

CostedWork PlanCosts::make_work(const WorkShape& shape) {
  CostedWork out{.shape = shape};
  out.plain = plain_costs(space_, shape, benches_.local());
  const Model& model = space_.base().model;
  for (std::size_t k = 0; k < units_.size(); ++k) {
    out.all += units_[k] * (out.plain[k].forward + out.plain[k].backward);
    if (units_[k] == 0 || may_recompute(model.kinds[k % model.kinds.size()].role)) continue;
    // Whatever the schedule does.
    const UnitCost& own = out.plain[k];
    out.most = std::max(out.most, std::min(own.most, std::max(own.most_forward, own.most_inputs)));
  }
  return out;
}

std::shared_ptr<const CostedWork> PlanCosts::work(const WorkShape& shape) {
  return works_.get(key_of(shape), [&] { return make_work(shape); });
}

std::shared_ptr<const CostedWork> PlanCosts::recomputed(const CostedWork& work) {
  return recomputed_.get(key_of(work.shape), [&] { return make_recomputed(work); });
}

CostedWork PlanCosts::make_recomputed(const CostedWork& work) {
  CostedWork out = work;
  const std::vector<RecomputeWord>& words = space_.choices().recompute;
  std::vector<std::int16_t> unlike;  // the first of those with the same costs
  for (const RecomputeWord& word : words) {
    const auto same = std::ranges::find_if(words, [&](const RecomputeWord& other) {
      return are_same(other.recompute, word.recompute);
    });
    const auto first = static_cast<std::int16_t>(same - words.begin());
    if (at(first) == out.like.size()) unlike.push_back(first);
    out.like.push_back(first);
  }
  std::erase_if(
      unlike, [&](std::int16_t w) { return words[at(w)].recompute.kind == Recompute::Kind::none; });
  out.again.resize(words.size(), out.plain);
  std::vector<WorkCosts> again =
      recomputed_costs(space_, work.shape, work.plain, unlike, benches_.local());
  for (std::size_t i = 0; i < unlike.size(); ++i) out.again[at(unlike[i])] = std::move(again[i]);
  for (std::size_t w = 0; w < words.size(); ++w) {
    out.again[w] = out.again[at(out.like[w])];
    out.eased.push_back(eased({.plain = &out.plain, .again = &out.again[w]}));
  }
  return out;
}

double PlanCosts::least_per_sample(WorkShape shape) {
  const std::int64_t samples = space_.base().batch.global / shape.degree(AxisRole::expert);
  if (samples > kMostSamples || samples < 1) return 0;
  shape.micro_batch = samples;
  return make_work(shape).all / static_cast<double>(samples) * kDips;
}

/// Replicas and shards of samples share what the other axes leave in all ways.
PlanCosts::StateKey PlanCosts::state_key(const Plan& plan) const {
  return {plan.degree(AxisRole::layer),
          plan.degree(AxisRole::sequence),
          plan.degree(AxisRole::expert),
          plan.degree(AxisRole::tensor),
          attention_like_[at(plan.attention)],
          plan.expert,
          plan.tensor,
          asks_micro_batches_ && space_.micro_batches(plan) > 1 ? 1 : 0};
}

std::shared_ptr<const FittingStates> PlanCosts::states(const Plan& plan,
                                                       const std::vector<Degrees>& meshes,
                                                       const StateRoom& room) {
  return states_.get({state_key(plan), room}, [&] { return make_states(plan, meshes, room); });
}

FittingStates PlanCosts::make_states(const Plan& plan, const std::vector<Degrees>& meshes,
                                     const StateRoom& room) {
  FittingStates out;
  Plan own = plan;
  for (const Degrees& mesh : meshes) {
    own.degrees = mesh;
    FittingStates on_mesh = states_of(own, room);
    out.refused += on_mesh.refused;
    std::ranges::move(on_mesh.choices, std::back_inserter(out.choices));
    if (!on_mesh.least.empty()) lower_to(on_mesh.least, out.least);
  }
  return out;
}

FittingStates PlanCosts::states_of(const Plan& plan, const StateRoom& room) {
  FittingStates out;
  const bool accumulates = space_.micro_batches(plan) > 1;
  const std::int64_t degree = plan.degree(AxisRole::layer);
  const auto fits = [&](const StateCosts& costs) {
    const std::int64_t rest =
        least_mean_rest(degree, whole_states(facts_, units_, costs), room.grows);
    return static_cast<double>(rest) <= room.bytes;
  };
  Plan own = plan;
  const auto add_offloads = [&] {
    MovableStates movable = state_costs(space_, own, accumulates, fits, benches_.local());
    out.refused += movable.refused;
    for (MovedStates& moved : movable.fitting) {
      lower_to(moved.costs, out.least);
      const WholeStates whole = whole_states(facts_, units_, moved.costs);
      out.choices.push_back({.degrees = own.degrees,
                             .order = own.order,
                             .state = own.state,
                             .offload = moved.offload,
                             .costs = std::move(moved.costs),
                             .whole = whole});
    }
  };
  for (const std::int16_t order : space_.orders_of(own.degrees)) {
    own.order = order;
    for (const std::int16_t state : space_.states_of(own.degrees)) {
      own.state = state;
      add_offloads();
    }
  }
  return out;
}

std::shared_ptr<const PipelineMoments> PlanCosts::moments(const Schedule& schedule,
                                                          std::int64_t degree,
                                                          std::int64_t micro_batches) {
  return moments_.get(flight_key(schedule, degree, micro_batches),
                      [&] { return moments_of(schedule, degree, micro_batches); });
}

std::shared_ptr<const std::vector<PipelineChoice>> PlanCosts::pipelines(std::int32_t degree) {
  return pipelines_.get(degree, [&] { return make_pipelines(degree); });
}

std::vector<PipelineChoice> PlanCosts::make_pipelines(std::int32_t degree) {
  std::vector<PipelineChoice> out;
  for (const std::int16_t word : space_.words_of(AxisRole::layer, degree)) {
    const auto splits = static_cast<std::int16_t>(space_.splits_of(degree, word).size());
    for (std::int16_t split = 0; split < splits; ++split) {
      out.push_back({.schedule = word,
                     .split = split,
                     .shape = std::make_shared<const PipelineShape>(
                         pipeline_shape(space_, degree, word, split, benches_.local().job))});
    }
  }
  return out;
}

PlanCosts::FlowKey PlanCosts::flow_key(const CostedWork& work, const Plan& plan,
                                       const PlanSpace::Recomputation& choice) {
  return {key_of(work.shape),
          {plan.degree(AxisRole::layer), plan.schedule, plan.split, choice.word, choice.count}};
}

double PlanCosts::flow(const CostedWork& work, const Plan& plan, const PipelineShape& pipeline,
                       const PlanSpace::Recomputation& choice, std::int64_t micro_batches) {
  if (!is_worth_a_flow(pipeline, micro_batches)) return 0;
  return *flows_.get(flow_key(work, plan, choice), [&] {
    return StepBound(facts_, pipeline, micro_batches)
        .least_by_order(work.pair(choice.word), space_.recompute_of(choice), {},
                        flow_of(pipeline, micro_batches));
  });
}

double PlanCosts::flow_with(const StepCosts& messages, const CostedWork& work,
                            const PipelineShape& pipeline, const PlanSpace::Recomputation& choice,
                            std::int64_t micro_batches) {
  if (!is_worth_a_flow(pipeline, micro_batches)) return 0;
  return StepBound(facts_, pipeline, micro_batches)
      .least_by_order(work.pair(choice.word), space_.recompute_of(choice), messages,
                      flow_of(pipeline, micro_batches));
}

double PlanCosts::eased_flow(const CostedWork& work, const Plan& plan,
                             const PipelineShape& pipeline, std::int16_t word,
                             std::int64_t micro_batches) {
  if (!is_worth_a_flow(pipeline, micro_batches)) return 0;
  const std::int16_t like = work.like[at(word)];
  return *flows_.get(flow_key(work, plan, {.word = like, .count = kAnyCount}), [&] {
    return StepBound(facts_, pipeline, micro_batches)
        .least_by_order(work.eased_pair(like), {}, {}, flow_of(pipeline, micro_batches));
  });
}

/// The last one that this thread has asked for: those of one pipeline are asked for together.
WorkFlow& PlanCosts::flow_of(const PipelineShape& pipeline, std::int64_t micro_batches) {
  const PipelineForm form = form_of(pipeline, micro_batches);
  std::optional<std::pair<PipelineForm, WorkFlow>>& known = work_flows_.local();
  if (!known || known->first != form) known.emplace(form, WorkFlow(form));
  return known->second;
}

PlanCosts::FlightKey PlanCosts::flight_key(const Schedule& schedule, std::int64_t degree,
                                           std::int64_t micro_batches) {
  return {degree,
          static_cast<std::int64_t>(schedule.hosting),
          static_cast<std::int64_t>(schedule.order),
          schedule.chunks,
          schedule.group,
          micro_batches};
}

PlanCosts::FlightKey PlanCosts::flight_key(const PipelineShape& pipeline,
                                           std::int64_t micro_batches) {
  const auto degree = static_cast<std::int64_t>(pipeline.devices.size());
  return flight_key(pipeline.schedule, degree, micro_batches);
}

std::shared_ptr<const PipelineInFlight> PlanCosts::in_flight(const PipelineShape& pipeline,
                                                             std::int64_t micro_batches) {
  return flights_.get(flight_key(pipeline, micro_batches),
                      [&] { return in_flight_of(pipeline, micro_batches); });
}

std::shared_ptr<const DeviceBounds> PlanCosts::devices(
    const std::shared_ptr<const PipelineShape>& pipeline, std::int64_t micro_batches) {
  return devices_.get({pipeline, micro_batches}, [&] {
    return DeviceBounds(facts_, *pipeline, *in_flight(*pipeline, micro_batches), micro_batches);
  });
}

}  // namespace placet
