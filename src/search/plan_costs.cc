#include "search/plan_costs.h"

#include <algorithm>

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
           r.kind == Recompute::Kind::first;
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

}  // namespace

PlanCosts::PlanCosts(const PlanSpace& space)
    : space_(space),
      facts_(bound_facts(space.base())),
      units_(space.costed_kinds(), 0),
      benches_([&space] { return Workbench(space); }) {
  for (const Unit& unit : space.base().model.units) {
    ++units_[at(space.costed_kind(unit.kind, space.anywhere()))];
  }
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
  for (std::size_t w = 0; w < words.size(); ++w) {
    const Recompute& own = words[w].recompute;
    const auto same = std::ranges::find_if(
        words, [&](const RecomputeWord& other) { return are_same(other.recompute, own); });
    const auto s = static_cast<std::size_t>(same - words.begin());
    out.like.push_back(static_cast<std::int16_t>(s));
    if (own.kind == Recompute::Kind::none) {
      out.again.push_back(out.plain);
    } else if (s < w) {
      out.again.push_back(out.again[s]);
    } else {
      out.again.push_back(
          recomputed_costs(space_, work.shape, static_cast<std::int16_t>(w), benches_.local()));
    }
    out.eased.push_back(eased({.plain = &out.plain, .again = &out.again.back()}));
  }
  return out;
}

/// Measured rates of messages fall by up to 0.2 % where they should rise with their size.
constexpr double kDips = 0.995;

double PlanCosts::least_per_sample(WorkShape shape) {
  const std::int64_t samples = space_.base().batch.global / shape.degree(AxisRole::expert);
  if (samples > kMostSamples || samples < 1) return 0;
  shape.micro_batch = samples;
  return make_work(shape).all / static_cast<double>(samples) * kDips;
}

std::shared_ptr<const StateCosts> PlanCosts::states(const Plan& plan) {
  // The pipeline changes the links of other axes only where it stands inside of one.
  const std::int32_t layers = plan.degree(AxisRole::layer);
  const bool outside = space_.choices().orders[at(plan.order)].front() == AxisRole::layer;
  const StateKey key = {plan.degrees[1], plan.degrees[2], plan.degrees[3],
                        plan.degrees[4], plan.degrees[5], plan.attention,
                        plan.expert,     plan.tensor,     plan.state,
                        plan.offload,    plan.order,      outside ? std::min(layers, 2) : layers};
  return states_.get(key, [&] { return state_costs(space_, plan, benches_.local()); });
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
    return least_flow(facts_, pipeline, work.pair(choice.word), space_.recompute_of(choice),
                      flow_of(pipeline, micro_batches));
  });
}

double PlanCosts::eased_flow(const CostedWork& work, const Plan& plan,
                             const PipelineShape& pipeline, std::int16_t word,
                             std::int64_t micro_batches) {
  if (!is_worth_a_flow(pipeline, micro_batches)) return 0;
  const std::int16_t like = work.like[at(word)];
  return *flows_.get(flow_key(work, plan, {.word = like, .count = kAnyCount}), [&] {
    return least_flow(facts_, pipeline, work.eased_pair(like), {},
                      flow_of(pipeline, micro_batches));
  });
}

/// The last one that this thread has asked for: those of one pipeline are asked for together.
WorkFlow& PlanCosts::flow_of(const PipelineShape& pipeline, std::int64_t micro_batches) {
  const FlightKey key = flight_key(pipeline, micro_batches);
  std::optional<std::pair<FlightKey, WorkFlow>>& known = work_flows_.local();
  if (!known || known->first != key) {
    const auto degree = static_cast<std::int64_t>(pipeline.devices.size());
    known.emplace(key, WorkFlow(pipeline.schedule, degree, micro_batches));
  }
  return known->second;
}

PlanCosts::FlightKey PlanCosts::flight_key(const PipelineShape& pipeline,
                                           std::int64_t micro_batches) {
  const Schedule& schedule = pipeline.schedule;
  return {static_cast<std::int64_t>(pipeline.devices.size()),
          static_cast<std::int64_t>(schedule.hosting),
          static_cast<std::int64_t>(schedule.order),
          schedule.chunks,
          schedule.group,
          micro_batches};
}

std::shared_ptr<const InFlight> PlanCosts::in_flight(const PipelineShape& pipeline,
                                                     std::int64_t micro_batches) {
  return flights_.get(flight_key(pipeline, micro_batches),
                      [&] { return in_flight_of(pipeline, micro_batches); });
}

}  // namespace placet
