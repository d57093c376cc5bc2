#include "search/plan_tree.h"

#include <algorithm>
#include <map>

#include "derive/communication.h"
#include "derive/derive.h"
#include "derive/rules.h"
#include "derive/step_messages.h"
#include "derive/time.h"
#include "derive/update_time.h"

namespace placet {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// A bound, less what rounding may have added to it.
double shrunk(double bound) { return bound * (1 - kRounding); }

/// Same units and ends, so that messages and states are the same.
bool are_alike(const PipelineShape& pipeline, std::size_t a, std::size_t b) {
  const auto is_end = [&](std::size_t d) {
    return std::ranges::any_of(pipeline.devices[d], [](const DeviceChunk& chunk) {
      return !chunk.sends_forward || !chunk.sends_backward;
    });
  };
  return !is_end(a) && !is_end(b) && pipeline.units[a] == pipeline.units[b];
}

/// Whether what is recomputed of a recomputed unit is the same.
bool are_same(const Recompute& a, const Recompute& b) {
  const auto whole = [](const Recompute& r) {
    return r.kind == Recompute::Kind::full || r.kind == Recompute::Kind::every ||
           r.kind == Recompute::Kind::first;
  };
  return (whole(a) && whole(b)) || a == b;
}

}  // namespace

PlanTree::PlanTree(const PlanSpace& space, PlanGoal goal)
    : space_(space),
      goal_(goal),
      facts_(bound_facts(space.base())),
      limit_(static_cast<double>(in_bytes(smallest_memory(*space.base().cluster))) *
             space.constraints().memory_fraction),
      grows_(space.base().profile.gradient_life == GradientLife::growing),
      units_(space.base().model.kinds.size(), 0),
      benches_([&space] { return Workbench(space); }) {
  for (const Unit& unit : space.base().model.units) ++units_[index(unit.kind)];
}

double PlanTree::value_of(double step, double bytes) const {
  switch (goal_) {
    case PlanGoal::time:
      return step;
    case PlanGoal::memory:
      return bytes;
  }
  return 0;
}

// --- counting

std::shared_ptr<const std::vector<PlanTree::PipelineChoice>> PlanTree::pipelines_of(
    std::int32_t degree) const {
  return pipelines_.get(degree, [&] {
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
  });
}

std::int64_t PlanTree::leaves_of_pipelines(std::int32_t degree) const {
  std::int64_t leaves = 0;
  for (const PipelineChoice& choice : *pipelines_of(degree)) {
    leaves += static_cast<std::int64_t>(choice.shape->recomputations.size());
  }
  return leaves;
}

std::int64_t PlanTree::leaves_of_states(const Degrees& mesh) const {
  return static_cast<std::int64_t>(space_.orders_of(mesh).size() * space_.states_of(mesh).size() *
                                   space_.offloads().size());
}

/// Of one mesh, words of the inner axes and micro-batch.
std::int64_t PlanTree::leaves_of(const Degrees& mesh) const {
  return leaves_of_states(mesh) * leaves_of_pipelines(mesh[at(AxisRole::layer)]);
}

std::int64_t PlanTree::micro_batches(const Plan& plan) const {
  const std::int64_t ways = std::int64_t{plan.degree(AxisRole::replica)} *
                            plan.degree(AxisRole::batch) * plan.degree(AxisRole::expert);
  return space_.base().batch.global / ways / plan.micro_batch;
}

std::int64_t PlanTree::size() const {
  std::int64_t leaves = 0;
  for (const Node& root : roots()) leaves += root.leaves;
  return leaves;
}

std::shared_ptr<const StateCosts> PlanTree::states_of(const Plan& plan) const {
  // The pipeline changes the links of other axes only where it stands inside of one.
  const std::int32_t layers = plan.degree(AxisRole::layer);
  const bool outside = space_.choices().orders[index(plan.order)].front() == AxisRole::layer;
  const StateKey key = {plan.degrees[1], plan.degrees[2], plan.degrees[3],
                        plan.degrees[4], plan.degrees[5], plan.attention,
                        plan.expert,     plan.tensor,     plan.state,
                        plan.offload,    plan.order,      outside ? std::min(layers, 2) : layers};
  return states_.get(key, [&] { return state_costs(space_, plan, benches_.local()); });
}

// --- shapes and work

std::vector<PlanTree::Node> PlanTree::roots() const {
  std::map<std::array<std::int32_t, 3>, std::vector<Degrees>> by_shape;
  for (const Degrees& mesh : space_.meshes()) {
    by_shape[{mesh[at(AxisRole::sequence)], mesh[at(AxisRole::expert)], mesh[at(AxisRole::tensor)]}]
        .push_back(mesh);
  }
  std::vector<Node> out;
  for (auto& [inner, meshes] : by_shape) {
    Node root;
    for (const Degrees& mesh : meshes) {
      root.leaves +=
          leaves_of(mesh) * static_cast<std::int64_t>(space_.micro_batches_of(mesh).size());
    }
    root.plan.degrees = {1, 1, 1, inner[0], inner[1], inner[2]};
    root.meshes = std::make_shared<const std::vector<Degrees>>(std::move(meshes));
    add_words(root, out);
  }
  return out;
}

void PlanTree::add_words(Node root, std::vector<Node>& out) const {
  const Degrees& degrees = root.plan.degrees;
  for (const std::int16_t a : space_.words_of(AxisRole::sequence, degrees[3])) {
    for (const std::int16_t e : space_.words_of(AxisRole::expert, degrees[4])) {
      for (const std::int16_t t : space_.words_of(AxisRole::tensor, degrees[5])) {
        root.plan.attention = a;
        root.plan.expert = e;
        root.plan.tensor = t;
        out.push_back(root);
      }
    }
  }
}

Opened<PlanTree::Node, FoundPlan> PlanTree::open(const Node& node, double cutoff) const {
  switch (node.level) {
    case Level::shape:
      return open_shape(node);
    case Level::work:
      return cost_work(node);
    case Level::costed_work:
      return open_work(node);
    case Level::mesh:
      return open_mesh(node);
    case Level::pipeline:
      return open_pipeline(node, cutoff);
    case Level::states:
      return open_states(node, cutoff);
    case Level::plan:
      return open_plan(node);
  }
  return {};
}

std::string PlanTree::broken_rule(const Job& job) const {
  for (const Finding& finding : check_rules(job)) {
    if (finding.severity == Severity::error) return finding.rule;
  }
  return {};
}

PlanTree::Result PlanTree::open_shape(const Node& node) const {
  Result out;
  Workbench& bench = benches_.local();
  apply_plain(space_,
              {.degrees = node.plan.degrees,
               .attention = node.plan.attention,
               .expert = node.plan.expert,
               .tensor = node.plan.tensor},
              bench.job);
  // What engines refuse may hang on what is not chosen yet.
  const std::string broken = broken_rule(bench.job);
  if (!broken.empty() && broken != "engine") {
    out.rejected[broken] = node.leaves;
    return out;
  }
  std::map<std::pair<std::int64_t, bool>, std::vector<Degrees>> by_work;
  for (const Degrees& mesh : *node.meshes) {
    Plan plan = node.plan;
    plan.degrees = mesh;
    for (const std::int64_t micro : space_.micro_batches_of(mesh)) {
      plan.micro_batch = micro;
      by_work[{micro, micro_batches(plan) > 1}].push_back(mesh);
    }
  }
  // Two chains, with and without accumulation, each by rising micro-batch.
  std::array<std::vector<WorkGroup>, 2> chains;
  for (auto& [key, meshes] : by_work) {
    WorkGroup group{.micro_batch = key.first, .accumulates = key.second};
    for (const Degrees& mesh : meshes) {
      group.leaves += leaves_of(mesh);
    }
    group.meshes = std::move(meshes);
    chains[key.second ? 1 : 0].push_back(std::move(group));
  }
  for (std::vector<WorkGroup>& chain : chains) {
    Node child{.level = Level::work, .plan = node.plan};
    for (const WorkGroup& group : chain) child.leaves += group.leaves;
    child.groups = std::make_shared<const std::vector<WorkGroup>>(std::move(chain));
    out.children.push_back(std::move(child));
  }
  return out;
}

PlanTree::Result PlanTree::cost_work(const Node& node) const {
  Result out;
  const WorkGroup& group = (*node.groups)[node.group];
  Work work{.shape = {.degrees = node.plan.degrees,
                      .attention = node.plan.attention,
                      .expert = node.plan.expert,
                      .tensor = node.plan.tensor,
                      .micro_batch = group.micro_batch,
                      .accumulates = group.accumulates}};
  work.plain = plain_costs(space_, work.shape, benches_.local());
  const Model& model = space_.base().model;
  for (std::size_t k = 0; k < units_.size(); ++k) {
    work.all += units_[k] * (work.plain[k].forward + work.plain[k].backward);
    const UnitRole role = model.kinds[k].role;
    const bool again = role == UnitRole::block || role == UnitRole::mtp;
    if (!again && units_[k] > 0) work.most = std::max(work.most, work.plain[k].most);
  }
  if (static_cast<double>(work.most) > limit_) {
    // Larger micro-batches need more.
    out.bounded = node.leaves;
    return out;
  }
  Node rest = node;
  rest.leaves -= group.leaves;
  ++rest.group;
  if (rest.leaves > 0) out.children.push_back(std::move(rest));
  // The devices that share a micro-batch's work are busy for it together; one has the mean or more.
  const double sharing = static_cast<double>(work.shape.degree(AxisRole::sequence) *
                                             work.shape.degree(AxisRole::tensor));
  const double groups = static_cast<double>(space_.devices()) / sharing;
  const double passes =
      static_cast<double>(space_.base().batch.global) / static_cast<double>(group.micro_batch);
  Node child = node;
  child.level = Level::costed_work;
  child.leaves = group.leaves;
  child.plan.micro_batch = group.micro_batch;
  child.bound = shrunk(value_of(work.all * passes / groups, static_cast<double>(work.most)));
  child.work = std::make_shared<const Work>(std::move(work));
  out.children.push_back(std::move(child));
  return out;
}

// --- meshes and pipelines

PlanTree::Result PlanTree::open_work(const Node& node) const {
  Result out;
  auto work = std::make_shared<Work>(*node.work);
  const std::vector<RecomputeWord>& words = space_.choices().recompute;
  for (std::size_t w = 0; w < words.size(); ++w) {
    const RecomputeWord& word = words[w];
    const auto same = static_cast<std::size_t>(
        std::ranges::find_if(
            words,
            [&](const RecomputeWord& other) { return are_same(other.recompute, word.recompute); }) -
        words.begin());
    if (word.recompute.kind == Recompute::Kind::none) {
      work->again.push_back(work->plain);
    } else if (same < w) {
      work->again.push_back(work->again[same]);
    } else {
      work->again.push_back(
          recomputed_costs(space_, work->shape, static_cast<std::int16_t>(w), benches_.local()));
    }
  }
  for (const Degrees& mesh : (*node.groups)[node.group].meshes) {
    if (leaves_of(mesh) == 0) continue;
    Node child{.leaves = leaves_of(mesh), .level = Level::mesh, .plan = node.plan, .work = work};
    child.plan.degrees = mesh;
    bound_mesh(*work, child);
    out.children.push_back(std::move(child));
  }
  return out;
}

void PlanTree::bound_mesh(const Work& work, Node& mesh) const {
  const WholeModel model{.units = units_,
                         .work = work.all,
                         .degree = mesh.plan.degree(AxisRole::layer),
                         .micro_batches = micro_batches(mesh.plan)};
  std::vector<StateChoice> choices;
  Plan plan = mesh.plan;
  mesh.bound = kNoBound;
  const auto add = [&] {
    auto costs = states_of(plan);
    const std::int64_t rest = least_mean_rest(model, *costs, grows_ && model.micro_batches == 1);
    const auto bytes = static_cast<double>(std::max(rest, work.most));
    if (bytes > limit_) return;
    mesh.bound =
        std::min(mesh.bound, shrunk(value_of(least_mean_step(facts_, model, *costs), bytes)));
    choices.push_back({.order = plan.order,
                       .state = plan.state,
                       .offload = plan.offload,
                       .costs = std::move(costs)});
  };
  for (const std::int16_t order : space_.orders_of(plan.degrees)) {
    for (const std::int16_t state : space_.states_of(plan.degrees)) {
      for (const std::int16_t offload : space_.offloads()) {
        plan.order = order;
        plan.state = state;
        plan.offload = offload;
        add();
      }
    }
  }
  mesh.states = std::make_shared<const std::vector<StateChoice>>(std::move(choices));
}

PlanTree::Result PlanTree::open_mesh(const Node& node) const {
  Result out;
  const std::int32_t degree = node.plan.degree(AxisRole::layer);
  const std::int64_t m = micro_batches(node.plan);
  const std::int64_t states = leaves_of_states(node.plan.degrees);
  for (const PipelineChoice& choice : *pipelines_of(degree)) {
    Node child = node;
    child.level = Level::pipeline;
    child.plan.schedule = choice.schedule;
    child.plan.split = choice.split;
    child.pipeline = choice.shape;
    child.leaves = states * static_cast<std::int64_t>(choice.shape->recomputations.size());
    if (degree > 1 && !unmet_need(choice.shape->schedule, degree, m).empty()) {
      out.rejected["schedule"] += child.leaves;
      continue;
    }
    const WorkPair work{&node.work->plain, &node.work->plain};
    child.step = StepBound(facts_, *choice.shape, m).least(work, {}, {});
    child.bound = shrunk(value_of(child.step, 0));
    out.children.push_back(std::move(child));
  }
  return out;
}

// --- states

namespace {

/// Most bytes on a device.
std::int64_t together(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  std::int64_t most = 0;
  for (std::size_t d = 0; d < a.size(); ++d) most = std::max(most, a[d] + b[d]);
  return most;
}

}  // namespace

PlanTree::Result PlanTree::open_pipeline(const Node& node, double cutoff) const {
  Result out;
  const PipelineShape& pipeline = *node.pipeline;
  const std::int64_t m = micro_batches(node.plan);
  std::vector<BoundedStates> open;  // that some recomputation may make a plan of
  double least_more = kNoBound;
  for (const StateChoice& choice : *node.states) {
    const double more =
        update_of(pipeline, *choice.costs) + least_messages(facts_, pipeline, *choice.costs, m);
    if (shrunk(value_of(node.step + more, 0)) > cutoff) continue;
    least_more = std::min(least_more, more);
    open.push_back(BoundedStates{.choice = &choice,
                                 .more = more,
                                 .bound = kNoBound,
                                 .rest = least_rest(pipeline, *choice.costs, grows_ && m == 1)});
  }
  if (!open.empty()) bound_recomputations(node, least_more, cutoff, open);
  out.bounded = node.leaves;
  for (const BoundedStates& states : open) {
    if (states.bound > cutoff || states.bound == kNoBound) continue;
    Node child = node;
    child.level = Level::states;
    child.bound = states.bound;
    child.leaves = static_cast<std::int64_t>(pipeline.recomputations.size());
    child.plan.order = states.choice->order;
    child.plan.state = states.choice->state;
    child.plan.offload = states.choice->offload;
    child.states = std::make_shared<const std::vector<StateChoice>>(1, *states.choice);
    out.bounded -= child.leaves;
    out.children.push_back(std::move(child));
  }
  return out;
}

void PlanTree::bound_recomputations(const Node& node, double least_more, double cutoff,
                                    std::vector<BoundedStates>& open) const {
  const PipelineShape& pipeline = *node.pipeline;
  const std::int64_t m = micro_batches(node.plan);
  const auto held = held_of(pipeline, m);
  StepBound steps(facts_, pipeline, m);
  for (const PlanSpace::Recomputation& choice : pipeline.recomputations) {
    const Recompute recompute = space_.recompute_of(choice);
    const WorkPair work{&node.work->plain, &node.work->again[index(choice.word)]};
    const double step = steps.least(work, recompute, {});
    if (shrunk(value_of(step + least_more, 0)) > cutoff) continue;
    const auto activations = least_activations(pipeline, work, recompute, held);
    for (BoundedStates& states : open) {
      const auto bytes = static_cast<double>(together(states.rest, activations));
      if (bytes > limit_) continue;
      states.bound = std::min(states.bound, shrunk(value_of(step + states.more, bytes)));
    }
  }
}

// --- plans

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

PlanTree::Result PlanTree::open_states(const Node& node, double cutoff) const {
  Result out;
  Job& job = benches_.local().job;
  const std::shared_ptr<const PipelineShape>& pipeline = node.pipeline;
  const std::int64_t m = micro_batches(node.plan);
  const auto held = held_of(*pipeline, m);
  const auto rest = least_rest(*pipeline, *node.states->front().costs, grows_ && m == 1);
  job.batch.global = space_.base().batch.global;
  space_.apply(node.plan, job);
  job.recompute = {};
  const StepCosts messages = messages_of(*pipeline, job);
  std::map<std::int16_t, std::string> broken;
  StepBound steps(facts_, *pipeline, m);
  for (const PlanSpace::Recomputation& choice : pipeline->recomputations) {
    Node child = node;
    child.level = Level::plan;
    child.leaves = 1;
    child.plan.recompute = choice.word;
    child.plan.count = choice.count;
    const Recompute recompute = space_.recompute_of(choice);
    if (!broken.contains(choice.word)) {
      job.recompute = recompute;
      broken[choice.word] = broken_rule(job);
    }
    if (const std::string& rule = broken[choice.word]; !rule.empty()) {
      ++out.rejected[rule];
      continue;
    }
    const WorkPair work{&node.work->plain, &node.work->again[index(choice.word)]};
    const auto activations = least_activations(*pipeline, work, recompute, held);
    const std::int64_t bytes = together(rest, activations);
    child.least_memory = placet::bytes(bytes);
    child.bound =
        static_cast<double>(bytes) > limit_
            ? kNoBound
            : shrunk(value_of(steps.least(work, recompute, messages), static_cast<double>(bytes)));
    if (child.bound > cutoff) {
      ++out.bounded;
    } else {
      child.work.reset();
      child.pipeline.reset();
      child.states.reset();
      out.children.push_back(std::move(child));
    }
  }
  return out;
}

EvaluatedPlan PlanTree::evaluate(const Plan& plan) const {
  Workbench& bench = benches_.local();
  bench.job.batch.global = space_.base().batch.global;
  space_.apply(plan, bench.job);
  const Prepared& prepared = bench.prepared[index(plan.recompute)];
  const WholeDerivation whole = derive_all(bench.job, prepared);
  const Derivation& derivation = whole.derivation;
  const TimeDerivation& time = whole.time;
  EvaluatedPlan out{.peak = derivation.peak};
  for (const Finding& finding : derivation.findings) {
    if (finding.severity != Severity::error) continue;
    out.broken = finding.rule;
    return out;
  }
  if (!derivation.fits || static_cast<double>(in_bytes(derivation.peak)) > limit_) return out;
  FoundPlan found{.plan = plan,
                  .figures = {.step = time.step,
                              .peak = derivation.peak,
                              .sent = derivation.sent,
                              .tokens = time.tokens,
                              .utilisation = placet::utilisation(time)}};
  found.value = value_of(in_seconds(time.step), static_cast<double>(in_bytes(derivation.peak)));
  out.found = found;
  return out;
}

PlanTree::Result PlanTree::open_plan(const Node& node) const {
  Result out;
  const EvaluatedPlan judged = evaluate(node.plan);
  if (!judged.broken.empty()) {
    out.rejected[judged.broken] = 1;
    return out;
  }
  ensure(node.least_memory <= judged.peak, "a bound of memory is never above the memory");
  out.visited = 1;
  out.answer = judged.found;
  return out;
}

}  // namespace placet
