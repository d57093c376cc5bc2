// The lower levels of the tree: pipelines and states.
#include <algorithm>
#include <map>
#include <span>

#include "derive/communication.h"
#include "derive/rules.h"
#include "derive/step_messages.h"
#include "derive/update_time.h"
#include "search/device_bounds.h"
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
               const PipelineInFlight& in_flight, StepBound& steps)
      : space_(space),
        family_(family),
        pipeline_(*node.pipeline),
        exact_(node.work->pair(family.front().word)),
        eased_(node.work->eased_pair(family.front().word)),
        in_flight_(in_flight),
        steps_(steps),
        falls_(space.recompute_of(family.front()).kind == Recompute::Kind::every),
        own_(family.size()),
        all_(family.size()) {}

  std::size_t size() const { return family_.size(); }
  const PlanSpace::Recomputation& first() const { return family_.front(); }

  /// Of the choice at a position alone.
  double own_step(std::size_t position) {
    return step_of(own_[position], exact_, position, Counting::exact);
  }
  const std::vector<std::int64_t>& own_activations(std::size_t position) {
    return activations_of(own_[position], exact_, position, Counting::exact);
  }
  /// Of the choice at a position and all slower ones.
  double step(std::size_t position) {
    if (size() == 1) return own_step(position);
    return step_of(all_[position], eased_, position, Counting::fewest);
  }
  /// Of the choice at a position and all that keep more.
  const std::vector<std::int64_t>& activations(std::size_t position) {
    if (size() == 1) return own_activations(position);
    return activations_of(all_[position], eased_, position, Counting::most);
  }

 private:
  static constexpr double kUnknown = -1;
  struct Known {
    double step = kUnknown;
    std::vector<std::int64_t> activations;
  };

  double step_of(Known& known, const WorkPair& work, std::size_t position, Counting counting) {
    if (known.step == kUnknown) known.step = steps_.least(work, at(position), {}, counting);
    return known.step;
  }
  const std::vector<std::int64_t>& activations_of(Known& known, const WorkPair& work,
                                                  std::size_t position, Counting counting) {
    if (known.activations.empty()) {
      known.activations = least_activations(pipeline_, work, at(position), in_flight_, counting);
    }
    return known.activations;
  }
  const Recompute& at(std::size_t position) const {
    return space_.recompute_of(family_[falls_ ? family_.size() - 1 - position : position]);
  }

  const PlanSpace& space_;
  PlanRecomputations family_;
  const PipelineShape& pipeline_;
  const WorkPair exact_;
  const WorkPair eased_;
  const PipelineInFlight& in_flight_;
  StepBound& steps_;
  bool falls_ = false;  // as the count rises, less is recomputed
  std::vector<Known> own_;
  std::vector<Known> all_;
};

PlanTree::BoundedStates PlanTree::bounded_states(const Node& node, const StateCosts& costs) const {
  const PipelineShape& pipeline = *node.pipeline;
  const std::int64_t m = micro_batches(node.plan);
  const double more = update_of(pipeline, costs) + least_messages(facts_, pipeline, costs, m);
  return {
      .more = more, .least = shrunk(value_of(node.step + more, 0)), .bound = kNoBound, .rest = {}};
}

std::vector<std::int64_t> PlanTree::rest_of(const Node& node, const StateCosts& costs) const {
  const std::int64_t m = micro_batches(node.plan);
  return least_rest(*node.pipeline, costs, *costs_->in_flight(*node.pipeline, m), grows_ && m == 1);
}

/// Least value of a pipeline's plans by its devices (`DeviceBounds`). `any`: no dearer than any of
/// its states.
double PlanTree::bound_by_device(const Node& node, const BoundedStates& any) const {
  const PipelineShape& pipeline = *node.pipeline;
  const std::vector<std::int64_t> rest = rest_of(node, node.states->least);
  const std::int64_t m = micro_batches(node.plan);
  const std::shared_ptr<const DeviceBounds> bounds = costs_->devices(node.pipeline, m);
  double least = kNoBound;
  std::pair<std::int16_t, RecomputedPart> last{-1, RecomputedPart::all};
  for (const PlanSpace::Recomputation& choice : pipeline.recomputations) {
    const bool some = takes_some(space_.recompute_of(choice));
    const auto part = some ? RecomputedPart::some : RecomputedPart::all;
    const std::pair same{node.work->like[at(choice.word)], part};
    if (same == last) continue;
    last = same;
    const WorkPair work = some ? node.work->eased_pair(choice.word) : node.work->pair(choice.word);
    const DeviceBounds::Least own = bounds->least(work, part, rest, limit_);
    if (own.step == kNoBound) continue;
    least = std::min(least, shrunk(value_of(own.step + any.more, static_cast<double>(own.bytes))));
  }
  return std::max(least, any.least);
}

/// Whatever the states and the recomputation of a pipeline's plan.
bool PlanTree::engine_refuses(const Plan& pipeline) const {
  if (space_.base().profile.refusals.empty()) return false;
  Job& job = benches_.local().job;
  job.batch.global = space_.base().batch.global;
  space_.apply(pipeline, job);
  job.recompute = {};
  return is_refused(
      job, bit_of(JobPart::micro_batches) | bit_of(JobPart::stages) | bit_of(JobPart::exchange));
}

PlanTree::Result PlanTree::open_pipeline(const Node& node, double cutoff) const {
  Result out;
  if (engine_refuses(node.plan)) {
    out.rejected["engine"] = node.leaves;
    return out;
  }
  const PipelineShape& pipeline = *node.pipeline;
  std::vector<BoundedStates> open;  // that some recomputation may make a plan of
  for (std::size_t i = 0; i < node.states->choices.size(); ++i) {
    const StateCosts& costs = node.states->choices[i].costs;
    BoundedStates states = bounded_states(node, costs);
    if (states.least > cutoff) continue;
    states.rest = rest_of(node, costs);
    states.choice = static_cast<std::int32_t>(i);
    open.push_back(std::move(states));
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
  const StateChoice& choice = node.states->choices[at(best.choice)];
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

template <class Visit>
void PlanTree::each_family(const Node& node, Visit visit) const {
  const PipelineShape& pipeline = *node.pipeline;
  const std::int64_t m = micro_batches(node.plan);
  const auto in_flight = costs_->in_flight(pipeline, m);
  StepBound steps(facts_, pipeline, m);
  const PlanRecomputations choices = pipeline.recomputations;
  for (std::size_t begin = 0; begin < choices.size();) {
    std::size_t end = begin + 1;
    while (end < choices.size() && choices[end].word == choices[begin].word) ++end;
    FamilyBounds family(space_, node, choices.subspan(begin, end - begin), *in_flight, steps);
    begin = end;
    visit(family);
  }
}

void PlanTree::bound_recomputations(const Node& node, std::vector<BoundedStates>& states,
                                    double cutoff) const {
  const BoundedStates least = least_of(states);
  each_family(node, [&](FamilyBounds& family) {
    if (goal_ == PlanGoal::time && shrunk(family.step(0) + least.more) > cutoff) return;
    BoundedStates any = least;
    bound_family(family, any, cutoff);
    if (any.bound == kNoBound || any.bound > cutoff) return;
    for (BoundedStates& own : states) bound_family(family, own, cutoff);
  });
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

namespace {

/// The first position that may fit, where what follows one that may does too; the last one if none
/// before it does.
template <class MayFit>
std::size_t first_to_ask(std::size_t last, MayFit may_fit) {
  std::size_t low = 0;
  std::size_t high = last > 0 && may_fit(0) ? 0 : last;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (may_fit(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

void PlanTree::bound_family(FamilyBounds& family, BoundedStates& states, double cutoff) const {
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
  const double first = shrunk(family.step(0) + states.more);
  if (first >= states.bound || first > cutoff) return;
  std::size_t low = first_to_ask(slowest, [&](std::size_t p) { return bytes_at(p) <= limit_; });
  // It may fit only if others are counted; whether it does by itself is asked from there on.
  const auto may_be_better = [&](std::size_t position) {
    const double least = shrunk(family.step(position) + states.more);
    return least < states.bound && least <= cutoff;
  };
  for (; low <= slowest && may_be_better(low); ++low) {
    if (static_cast<double>(together(states.rest, family.own_activations(low))) > limit_) continue;
    states.bound = std::min(states.bound, shrunk(family.own_step(low) + states.more));
  }
}

StepCosts PlanTree::messages_of(const PipelineShape& pipeline, const Job& job) const {
  StepCosts out;
  const Layout layout = lay_out(job, benches_.local().plain);
  const std::vector<Stage> stages = stages_of(job);
  const std::vector<CommunicationClass> traffic = derive_communication(layout, stages);
  MessageTimer timer(job);
  out.devices.resize(stages.size());
  for (std::size_t d = 0; d < stages.size(); ++d) {
    if (d > 0 && are_alike(pipeline, d, d - 1)) {
      out.devices[d] = out.devices[d - 1];
      continue;
    }
    const StageUnits units = units_of(layout, stages[d]);
    const StepMessages messages = step_messages(layout, traffic[d], units.groups, timer);
    double hosted = 0;
    for (const std::int32_t count : pipeline.units[d]) hosted += count;
    out.devices[d] = {.forward = in_seconds(messages.forward.total()),
                      .backward = in_seconds(messages.backward.total()),
                      .reduce = in_seconds(messages.reduce.total()),
                      .units = hosted};
    out.boundary = std::max(out.boundary, in_seconds(messages.boundary));
    out.update = std::max(out.update, in_seconds(update_time(layout, stages[d], units)));
    out.after = std::max(out.after, in_seconds(messages.update.total()));
  }
  return out;
}

/// Seconds by the order of work. For each count of a counted recomputation it would take too long:
/// one for all of them.
double PlanTree::flow_of(const Node& node, const PlanSpace::Recomputation& choice) const {
  const std::int64_t m = micro_batches(node.plan);
  return choice.count == 0
             ? costs_->flow(*node.work, node.plan, *node.pipeline, choice, m)
             : costs_->eased_flow(*node.work, node.plan, *node.pipeline, choice.word, m);
}

PlanTree::Result PlanTree::time_states(const Node& node, double cutoff) const {
  Result out;
  const StateCosts& costs = node.states->choices[at(node.choice)].costs;
  BoundedStates own = bounded_states(node, costs);
  own.rest = rest_of(node, costs);
  const double end = least_end(facts_, *node.pipeline, costs);
  Node child = node;
  child.level = Level::timed_states;
  child.bound = kNoBound;
  each_family(node, [&](FamilyBounds& family) {
    BoundedStates states = own;
    bound_family(family, states, cutoff);
    // Going through an order takes longer than all other bounds together.
    if (states.bound <= cutoff && states.bound < child.bound) {
      states.bound = std::max(states.bound, shrunk(flow_of(node, family.first()) + end));
    }
    child.bound = std::min(child.bound, states.bound);
  });
  out.children.push_back(std::move(child));
  return out;
}

PlanTree::Result PlanTree::open_states(const Node& node, double cutoff) const {
  Result out;
  Job& job = benches_.local().job;
  const std::shared_ptr<const PipelineShape>& pipeline = node.pipeline;
  const std::int64_t m = micro_batches(node.plan);
  const auto in_flight = costs_->in_flight(*pipeline, m);
  const StateCosts& costs = node.states->choices[at(node.choice)].costs;
  const std::vector<std::int64_t> rest = rest_of(node, costs);
  job.batch.global = space_.base().batch.global;
  space_.apply(node.plan, job);
  job.recompute = {};
  const auto messages = std::make_shared<const StepCosts>(messages_of(*pipeline, job));
  std::map<std::int16_t, std::string> broken;
  StepBound steps(facts_, *pipeline, m);
  std::vector<BoundedPlan> plans;
  for (const PlanSpace::Recomputation& choice : pipeline->recomputations) {
    const Recompute& recompute = space_.recompute_of(choice);
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
    const double least =
        static_cast<double>(bytes) > limit_
            ? kNoBound
            : shrunk(value_of(steps.least(work, recompute, *messages), static_cast<double>(bytes)));
    if (least > cutoff) {
      ++out.bounded;
      continue;
    }
    plans.push_back({.bound = least, .recompute = choice, .least_memory = placet::bytes(bytes)});
  }
  if (plans.empty()) return out;
  std::ranges::stable_sort(plans, {}, &BoundedPlan::bound);
  Node child = node;
  child.level = Level::listed_plans;
  child.bound = plans.front().bound;
  child.leaves = static_cast<std::int64_t>(plans.size());
  child.plans = std::make_shared<const std::vector<BoundedPlan>>(std::move(plans));
  child.first = 0;
  child.messages = messages;
  out.children.push_back(std::move(child));
  return out;
}

/// The best of its plans, and the others in their turn.
PlanTree::Result PlanTree::open_listed_plans(const Node& node) const {
  Result out;
  const BoundedPlan& best = (*node.plans)[node.first];
  Node child = node;
  child.level = goal_ == PlanGoal::time ? Level::bounded_plan : Level::plan;
  child.bound = best.bound;
  child.leaves = 1;
  child.plan.recompute = best.recompute.word;
  child.plan.count = best.recompute.count;
  child.least_memory = best.least_memory;
  child.plans = nullptr;
  out.children.push_back(std::move(child));
  if (node.leaves == 1) return out;
  Node others = node;
  ++others.first;
  others.bound = (*node.plans)[others.first].bound;
  --others.leaves;
  out.children.push_back(std::move(others));
  return out;
}

/// By the order of work, which takes longer than all other bounds together: only of plans whose
/// turn has come.
PlanTree::Result PlanTree::time_plan(const Node& node) const {
  const PlanSpace::Recomputation choice{.word = node.plan.recompute, .count = node.plan.count};
  const StateCosts& costs = node.states->choices[at(node.choice)].costs;
  const double by_order = flow_of(node, choice) + least_end(facts_, *node.pipeline, costs);
  const double with_messages = costs_->flow_with(*node.messages, *node.work, *node.pipeline, choice,
                                                 micro_batches(node.plan));
  const double seconds = std::max(by_order, with_messages);
  Result out;
  out.children.push_back(
      {.bound = shrunk(value_of(seconds, static_cast<double>(in_bytes(node.least_memory)))),
       .leaves = 1,
       .level = Level::plan,
       .plan = node.plan,
       .least_memory = node.least_memory});
  return out;
}

}  // namespace placet
