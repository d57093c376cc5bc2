#include "search/plan_estimates.h"

#include <algorithm>

#include "units/at.h"

namespace placet {
namespace {

/// What one choice adds to the plans that have it, by device of the pipeline where devices differ.
struct Added {
  double seconds = 0;
  std::vector<std::int64_t> bytes;
  std::vector<std::int64_t> sent;
};

/// Two choices together. Peaks of one and the other are on one device where they are largest.
PlanEstimate sum_of(const Added& a, const Added& b) {
  PlanEstimate out{.step = a.seconds + b.seconds};
  for (std::size_t d = 0; d < a.bytes.size(); ++d) {
    out.bytes = std::max(out.bytes, a.bytes[d] + b.bytes[d]);
    out.sent = std::max(out.sent, a.sent[d] + b.sent[d]);
  }
  return out;
}

/// What states add to a pipeline's plans.
struct StatesAdded {
  const StateChoice* states = nullptr;
  Added added;
};

/// The pipelines of one work and mesh.
class PipelineEstimates {
 public:
  PipelineEstimates(const PlanSpace& space, PlanCosts& costs, const PipelineShape& pipeline,
                    std::int64_t micro_batches)
      : space_(space),
        costs_(costs),
        pipeline_(pipeline),
        micro_batches_(micro_batches),
        rounds_(rounds_of(pipeline.schedule, micro_batches)),
        in_flight_(costs.in_flight(pipeline, micro_batches)),
        steps_(costs.facts(), pipeline, micro_batches) {}

  Added of_recomputation(const CostedWork& work, const PlanSpace::Recomputation& choice) {
    const WorkPair pair = work.pair(choice.word);
    const Recompute& recompute = space_.recompute_of(choice);
    Added out{.seconds = steps_.least(pair, recompute, {}),
              .bytes = least_activations(pipeline_, pair, recompute, *in_flight_)};
    out.sent.reserve(pipeline_.devices.size());
    for (const std::vector<DeviceChunk>& chunks : pipeline_.devices) {
      std::int64_t once = 0;
      for (const DeviceChunk& chunk : chunks) once += sent_once(chunk, pair, recompute);
      out.sent.push_back(in_all_rounds(once));
    }
    return out;
  }

  Added of_states(const StateCosts& states, bool grows) const {
    Added out{.seconds = update_of(pipeline_, states) +
                         least_messages(costs_.facts(), pipeline_, states, micro_batches_),
              .bytes = least_rest(pipeline_, states, *in_flight_, grows)};
    for (const std::vector<std::int32_t>& units : pipeline_.units) {
      std::int64_t each = 0;
      std::int64_t once = 0;
      for (std::size_t k = 0; k < states.size(); ++k) {
        each += units[k] * states[k].sent_each;
        once += units[k] * states[k].sent_once;
      }
      out.sent.push_back(in_all_rounds(each) + once);
    }
    return out;
  }

  std::vector<StatesAdded> of_all(const std::vector<StateChoice>& states, bool grows) const {
    std::vector<StatesAdded> out;
    out.reserve(states.size());
    for (const StateChoice& own : states) out.push_back({&own, of_states(own.costs, grows)});
    return out;
  }

 private:
  /// By a chunk for one micro-batch.
  static std::int64_t sent_once(const DeviceChunk& chunk, const WorkPair& pair,
                                const Recompute& recompute) {
    std::int64_t sent = 0;
    for (const KindRun& run : chunk.runs) {
      const std::int64_t again = recomputed_of(run, recompute);
      sent += (*pair.plain)[at(run.kind)].sent * (run.count - again);
      if (again > 0) sent += (*pair.again)[at(run.kind)].sent * again;
    }
    return sent;
  }

  std::int64_t in_all_rounds(std::int64_t bytes) const {
    return static_cast<std::int64_t>(static_cast<double>(bytes) * rounds_);
  }

  const PlanSpace& space_;
  PlanCosts& costs_;
  const PipelineShape& pipeline_;
  std::int64_t micro_batches_;
  double rounds_;  // micro-batches that a chunk sees
  std::shared_ptr<const PipelineInFlight> in_flight_;
  StepBound steps_;
};

void visit_all(Plan plan, const Added& base, const std::vector<StatesAdded>& added,
               const PlanEstimates::Visit& visit) {
  for (const StatesAdded& one : added) {
    plan.order = one.states->order;
    plan.state = one.states->state;
    plan.offload = one.states->offload;
    visit(plan, sum_of(base, one.added));
  }
}

}  // namespace

void PlanEstimates::each(const Degrees& mesh, const Visit& visit) const {
  Plan plan{.degrees = mesh};
  for (const std::int16_t a : space_.words_of(AxisRole::sequence, plan.degrees[3])) {
    plan.attention = a;
    for (const std::int16_t e : space_.words_of(AxisRole::expert, plan.degrees[4])) {
      plan.expert = e;
      each_tensor_cut(plan, visit);
    }
  }
}

void PlanEstimates::each_tensor_cut(Plan plan, const Visit& visit) const {
  for (const std::int16_t t : space_.words_of(AxisRole::tensor, plan.degrees[5])) {
    plan.tensor = t;
    for (const std::int64_t micro : space_.micro_batches_of(plan.degrees)) {
      plan.micro_batch = micro;
      each_work(plan, visit);
    }
  }
}

void PlanEstimates::each_work(Plan plan, const Visit& visit) const {
  const std::int64_t m = space_.micro_batches(plan);
  WorkShape shape{.degrees = {1, 1, 1, plan.degrees[3], plan.degrees[4], plan.degrees[5]},
                  .attention = plan.attention,
                  .expert = plan.expert,
                  .tensor = plan.tensor,
                  .micro_batch = plan.micro_batch,
                  .accumulates = m > 1};
  const auto work = costs_.recomputed(*costs_.work(shape));
  const bool grows = space_.base().profile.gradient_life == GradientLife::growing && m == 1;
  const std::int32_t degree = plan.degree(AxisRole::layer);
  const std::vector<StateChoice> states = costs_.states_of(plan, {}).choices;
  for (const PipelineChoice& choice : *costs_.pipelines(degree)) {
    if (degree > 1 && !unmet_need(choice.shape->schedule, degree, m).empty()) continue;
    plan.schedule = choice.schedule;
    plan.split = choice.split;
    PipelineEstimates pipeline(space_, costs_, *choice.shape, m);
    const std::vector<StatesAdded> added = pipeline.of_all(states, grows);
    for (const PlanSpace::Recomputation& recomputation : choice.shape->recomputations) {
      plan.recompute = recomputation.word;
      plan.count = recomputation.count;
      visit_all(plan, pipeline.of_recomputation(*work, recomputation), added, visit);
    }
  }
}

}  // namespace placet
