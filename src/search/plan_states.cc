// The lower levels of the tree: pipelines and states.
#include <algorithm>
#include <map>
#include <span>

#include "derive/communication.h"
#include "derive/step_messages.h"
#include "derive/update_time.h"
#include "search/plan_tree.h"
#include "units/at.h"

namespace placet {
namespace {

/// Same units and ends, so that messages and states are the same.
bool are_alike(const PipelineShape& pipeline, std::size_t a, std::size_t b) {
  const auto is_end = [&](std::size_t d) {
    return std::ranges::any_of(pipeline.devices[d], [](const DeviceChunk& chunk) {
      return !chunk.sends_forward || !chunk.sends_backward;
    });
  };
  return !is_end(a) && !is_end(b) && pipeline.units[a] == pipeline.units[b];
}

/// Most bytes on a device.
std::int64_t together(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  std::int64_t most = 0;
  for (std::size_t d = 0; d < a.size(); ++d) most = std::max(most, a[d] + b[d]);
  return most;
}

using PlanRecomputations = std::span<const PlanSpace::Recomputation>;

}  // namespace

/// Bounds of recomputations from the fastest, which keeps most, to the slowest: one by one, as they
/// are asked for. The counts of a counted one are bounded from both sides: never more seconds, nor
/// more bytes, than any with the count takes.
class FamilyBounds {
 public:
  FamilyBounds(const PlanSpace& space, const PlanTree::Node& node, PlanRecomputations family,
               const InFlight& in_flight, StepBound& steps)
      : space_(space),
        family_(family),
        pipeline_(*node.pipeline),
        work_(node.work->pair(family.front().word)),
        in_flight_(in_flight),
        steps_(steps),
        falls_(space.recompute_of(family.front()).kind == Recompute::Kind::every),
        counting_(family.size() > 1),
        step_(family.size(), kUnknown),
        activations_(family.size()) {}

  std::size_t size() const { return family_.size(); }

  double step(std::size_t position) {
    double& known = step_[position];
    if (known == kUnknown)
      known = steps_.least(work_, at(position), {}, counting_ ? Counting::fewest : Counting::exact);
    return known;
  }
  const std::vector<std::int64_t>& activations(std::size_t position) {
    std::vector<std::int64_t>& known = activations_[position];
    if (known.empty()) {
      known = least_activations(pipeline_, work_, at(position), in_flight_,
                                counting_ ? Counting::most : Counting::exact);
    }
    return known;
  }

 private:
  static constexpr double kUnknown = -1;
  Recompute at(std::size_t position) const {
    return space_.recompute_of(family_[falls_ ? family_.size() - 1 - position : position]);
  }

  const PlanSpace& space_;
  PlanRecomputations family_;
  const PipelineShape& pipeline_;
  const WorkPair work_;
  const InFlight& in_flight_;
  StepBound& steps_;
  bool falls_ = false;  // as the count rises, less is recomputed
  bool counting_ = false;
  std::vector<double> step_;
  std::vector<std::vector<std::int64_t>> activations_;
};

PlanTree::Result PlanTree::open_pipeline(const Node& node, double cutoff) const {
  Result out;
  const PipelineShape& pipeline = *node.pipeline;
  const std::int64_t m = micro_batches(node.plan);
  std::vector<BoundedStates> open;  // that some recomputation may make a plan of
  for (std::size_t i = 0; i < node.states->size(); ++i) {
    const StateCosts& costs = *(*node.states)[i].costs;
    const double more = update_of(pipeline, costs) + least_messages(facts_, pipeline, costs, m);
    const double least = shrunk(value_of(node.step + more, 0));
    if (least > cutoff) continue;
    open.push_back({.choice = static_cast<std::int32_t>(i),
                    .more = more,
                    .least = least,
                    .bound = kNoBound,
                    .rest = least_rest(pipeline, costs, grows_ && m == 1)});
  }
  if (!open.empty()) bound_recomputations(node, open, cutoff);
  std::vector<BoundedChoice> bounded;
  for (const BoundedStates& states : open) {
    if (states.bound > cutoff || states.bound == kNoBound) continue;
    bounded.push_back({.bound = states.bound, .choice = states.choice});
  }
  std::ranges::sort(bounded);
  const auto each = static_cast<std::int64_t>(pipeline.recomputations.size());
  const std::int64_t leaves = each * static_cast<std::int64_t>(bounded.size());
  out.bounded = node.leaves - leaves;
  if (bounded.empty()) return out;
  Node child = node;
  child.level = Level::bounded_pipeline;
  child.bound = bounded.front().bound;
  child.leaves = leaves;
  child.bounded = std::make_shared<const std::vector<BoundedChoice>>(std::move(bounded));
  out.children.push_back(std::move(child));
  return out;
}

/// The best of its states, and the others in their turn.
PlanTree::Result PlanTree::open_bounded_pipeline(const Node& node) const {
  Result out;
  const auto each = static_cast<std::int64_t>(node.pipeline->recomputations.size());
  const BoundedChoice& best = (*node.bounded)[node.first];
  const StateChoice& choice = (*node.states)[at(best.choice)];
  Node child = node;
  child.level = goal_ == PlanGoal::time ? Level::states : Level::timed_states;
  child.bound = best.bound;
  child.leaves = each;
  child.plan.degrees = choice.degrees;
  child.plan.order = choice.order;
  child.plan.state = choice.state;
  child.plan.offload = choice.offload;
  child.choice = best.choice;
  child.bounded = nullptr;
  out.children.push_back(std::move(child));
  if (node.first + 1 == node.bounded->size()) return out;
  Node others = node;
  ++others.first;
  others.bound = (*node.bounded)[others.first].bound;
  others.leaves -= each;
  out.children.push_back(std::move(others));
  return out;
}

void PlanTree::bound_recomputations(const Node& node, std::vector<BoundedStates>& states,
                                    double cutoff) const {
  const PipelineShape& pipeline = *node.pipeline;
  const std::int64_t m = micro_batches(node.plan);
  const auto in_flight = costs_->in_flight(pipeline, m);
  StepBound steps(facts_, pipeline, m);
  const PlanRecomputations choices = pipeline.recomputations;
  const BoundedStates least = least_of(states);
  for (std::size_t begin = 0; begin < choices.size();) {
    const std::int16_t word = choices[begin].word;
    const WorkPair work = node.work->pair(word);
    std::size_t end = begin + 1;
    while (is_exchange(work) && end < choices.size() && choices[end].word == word) ++end;
    FamilyBounds family(space_, node, choices.subspan(begin, end - begin), *in_flight, steps);
    begin = end;
    if (goal_ == PlanGoal::time && shrunk(family.step(0) + least.more) > cutoff) continue;
    BoundedStates any = least;
    bound_family(family, any);
    if (any.bound == kNoBound || any.bound > cutoff) continue;
    for (BoundedStates& own : states) bound_family(family, own);
  }
}

/// No dearer than any of them. REQUIRES: there is one.
PlanTree::BoundedStates PlanTree::least_of(const std::vector<BoundedStates>& states) {
  BoundedStates out = states.front();
  for (const BoundedStates& own : states) {
    out.more = std::min(out.more, own.more);
    out.least = std::min(out.least, own.least);
    for (std::size_t d = 0; d < out.rest.size(); ++d) {
      out.rest[d] = std::min(out.rest[d], own.rest[d]);
    }
  }
  out.bound = kNoBound;
  return out;
}

void PlanTree::bound_family(FamilyBounds& family, BoundedStates& states) const {
  const auto bytes_at = [&](std::size_t position) {
    return static_cast<double>(together(states.rest, family.activations(position)));
  };
  if (states.bound <= states.least) return;  // nothing is quicker
  const std::size_t slowest = family.size() - 1;
  if (bytes_at(slowest) > limit_) return;
  if (goal_ == PlanGoal::memory) {
    states.bound = std::min(states.bound, shrunk(bytes_at(slowest)));
    return;
  }
  if (shrunk(family.step(0) + states.more) >= states.bound) return;
  // The fastest that fits.
  std::size_t low = 0;
  std::size_t high = slowest > 0 && bytes_at(0) <= limit_ ? 0 : slowest;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (bytes_at(middle) > limit_) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  states.bound = std::min(states.bound, shrunk(family.step(low) + states.more));
}

StepCosts PlanTree::messages_of(const PipelineShape& pipeline, const Job& job) const {
  StepCosts out;
  const Prepared& prepared = benches_.local().prepared.front();
  const Layout layout = lay_out(job, prepared);
  const std::vector<Stage> stages = stages_of(job);
  const std::vector<CommunicationClass> traffic = derive_communication(layout, stages);
  MessageTimer timer(job);
  out.devices.resize(stages.size());
  for (std::size_t d = 0; d < stages.size(); ++d) {
    if (d > 0 && are_alike(pipeline, d, d - 1)) {
      out.devices[d] = out.devices[d - 1];
      continue;
    }
    const StepMessages messages = step_messages(layout, traffic[d], timer);
    double units = 0;
    for (const std::int32_t count : pipeline.units[d]) units += count;
    out.devices[d] = {.forward = in_seconds(messages.forward.total()),
                      .backward = in_seconds(messages.backward.total()),
                      .reduce = in_seconds(messages.reduce.total()),
                      .units = units};
    out.boundary = std::max(out.boundary, in_seconds(messages.boundary));
    out.update = std::max(out.update, in_seconds(update_time(layout, stages[d])));
    out.after = std::max(out.after, in_seconds(messages.update.total()));
  }
  return out;
}

/// Seconds by the order of work. For each count of a counted recomputation it would take too long:
/// they take no less than without, unless recomputing is quicker than what it replaces.
double PlanTree::flow_of(const Node& node, const PlanSpace::Recomputation& choice) const {
  const std::int64_t m = micro_batches(node.plan);
  if (choice.count != 0 && !is_exchange(node.work->pair(choice.word))) return 0;
  return choice.count == 0 ? costs_->flow(*node.work, node.plan, *node.pipeline, choice, m)
                           : costs_->plain_flow(*node.work, node.plan, *node.pipeline, m);
}

PlanTree::Result PlanTree::time_states(const Node& node) const {
  Result out;
  const PipelineShape& pipeline = *node.pipeline;
  const std::int64_t m = micro_batches(node.plan);
  const StateCosts& costs = *(*node.states)[at(node.choice)].costs;
  const auto in_flight = costs_->in_flight(pipeline, m);
  const auto rest = least_rest(pipeline, costs, grows_ && m == 1);
  double least = kNoBound;
  for (const PlanSpace::Recomputation& choice : pipeline.recomputations) {
    const double flow = flow_of(node, choice);
    if (flow >= least) continue;
    const auto activations = least_activations(pipeline, node.work->pair(choice.word),
                                               space_.recompute_of(choice), *in_flight);
    if (static_cast<double>(together(rest, activations)) <= limit_) least = flow;
  }
  Node child = node;
  child.level = Level::timed_states;
  child.bound = shrunk(least + least_end(facts_, pipeline, costs));
  out.children.push_back(std::move(child));
  return out;
}

PlanTree::Result PlanTree::open_states(const Node& node, double cutoff) const {
  Result out;
  Job& job = benches_.local().job;
  const std::shared_ptr<const PipelineShape>& pipeline = node.pipeline;
  const std::int64_t m = micro_batches(node.plan);
  const auto in_flight = costs_->in_flight(*pipeline, m);
  const StateCosts& costs = *(*node.states)[at(node.choice)].costs;
  const auto rest = least_rest(*pipeline, costs, grows_ && m == 1);
  const double end = least_end(facts_, *pipeline, costs);
  job.batch.global = space_.base().batch.global;
  space_.apply(node.plan, job);
  job.recompute = {};
  const StepCosts messages = messages_of(*pipeline, job);
  std::map<std::int16_t, std::string> broken;
  StepBound steps(facts_, *pipeline, m);
  for (const PlanSpace::Recomputation& choice : pipeline->recomputations) {
    Plan plan = node.plan;
    plan.recompute = choice.word;
    plan.count = choice.count;
    const Recompute recompute = space_.recompute_of(choice);
    if (!broken.contains(choice.word)) {
      job.recompute = recompute;
      broken[choice.word] = broken_rule(job);
    }
    if (const std::string& rule = broken[choice.word]; !rule.empty()) {
      ++out.rejected[rule];
      continue;
    }
    const WorkPair work = node.work->pair(choice.word);
    const auto activations = least_activations(*pipeline, work, recompute, *in_flight);
    const std::int64_t bytes = together(rest, activations);
    const auto bound = [&](double seconds) {
      return shrunk(value_of(seconds, static_cast<double>(bytes)));
    };
    double least = static_cast<double>(bytes) > limit_
                       ? kNoBound
                       : bound(steps.least(work, recompute, messages));
    if (least <= cutoff && goal_ == PlanGoal::time) {
      least = std::max(least, bound(flow_of(node, choice) + end));
    }
    if (least > cutoff) {
      ++out.bounded;
    } else {
      out.children.push_back({.bound = least,
                              .leaves = 1,
                              .level = Level::plan,
                              .plan = plan,
                              .least_memory = placet::bytes(bytes)});
    }
  }
  return out;
}

}  // namespace placet
