#include "search/plan_tree.h"

#include <algorithm>
#include <map>

#include "derive/derive.h"
#include "derive/fit.h"
#include "derive/rules.h"
#include "derive/time.h"
#include "units/at.h"

namespace placet {

PlanTree::PlanTree(const PlanSpace& space, PlanGoal goal, std::shared_ptr<PlanCosts> costs)
    : space_(space),
      goal_(goal),
      costs_(costs ? std::move(costs) : std::make_shared<PlanCosts>(space)),
      facts_(costs_->facts()),
      limit_(static_cast<double>(in_bytes(smallest_memory(*space.base().cluster))) *
             space.constraints().memory_fraction),
      grows_(space.base().profile.gradient_life == GradientLife::growing),
      benches_([&space] { return Workbench(space); }) {}

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

std::int64_t PlanTree::leaves_of_pipelines(std::int32_t degree) const {
  std::int64_t leaves = 0;
  for (const PipelineChoice& choice : *costs_->pipelines(degree)) {
    leaves += static_cast<std::int64_t>(choice.shape->recomputations.size());
  }
  return leaves;
}

std::int64_t PlanTree::leaves_of_states(const Degrees& mesh) const {
  return static_cast<std::int64_t>(space_.orders_of(mesh).size() * space_.states_of(mesh).size() *
                                   space_.offloads().size());
}

std::int64_t PlanTree::leaves_of_states(const std::vector<Degrees>& meshes) const {
  std::int64_t leaves = 0;
  for (const Degrees& mesh : meshes) leaves += leaves_of_states(mesh);
  return leaves;
}

/// Of one mesh, words of the inner axes and micro-batch.
std::int64_t PlanTree::leaves_of(const Degrees& mesh) const {
  return leaves_of_states(mesh) * leaves_of_pipelines(mesh[at(AxisRole::layer)]);
}

std::int64_t PlanTree::micro_batches(const Plan& plan) const { return space_.micro_batches(plan); }

std::int64_t PlanTree::size() const {
  std::int64_t leaves = 0;
  for (const Node& root : roots()) leaves += root.leaves;
  return leaves;
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
    root.plan.attention = a;
    for (const std::int16_t e : space_.words_of(AxisRole::expert, degrees[4])) {
      root.plan.expert = e;
      add_tensor_words(root, out);
    }
  }
}

void PlanTree::add_tensor_words(Node& root, std::vector<Node>& out) const {
  for (const std::int16_t t : space_.words_of(AxisRole::tensor, root.plan.degrees[5])) {
    root.plan.tensor = t;
    out.push_back(root);
  }
}

bool PlanTree::all_same_as(const Node& node, const FoundPlan& found) const {
  return node.level >= Level::states && space_.placement_of(node.plan) == found.placement;
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
    case Level::costed_mesh:
      return open_costed_mesh(node, cutoff);
    case Level::pipeline:
      return open_pipeline(node, cutoff);
    case Level::bounded_pipeline:
      return open_bounded_pipeline(node);
    case Level::states:
      return time_states(node, cutoff);
    case Level::timed_states:
      return open_states(node, cutoff);
    case Level::listed_plans:
      return open_listed_plans(node);
    case Level::bounded_plan:
      return time_plan(node);
    case Level::plan:
      return open_plan(node, cutoff);
  }
  return {};
}

std::string PlanTree::broken_rule(const Job& job) const {
  for (const Finding& finding : check_rules(job)) {
    if (finding.severity == Severity::error) return finding.rule;
  }
  return {};
}

WorkShape PlanTree::shape_of(const Plan& plan, const WorkGroup& group) const {
  return {.degrees = plan.degrees,
          .attention = plan.attention,
          .expert = plan.expert,
          .tensor = plan.tensor,
          .micro_batch = group.micro_batch,
          .accumulates = group.accumulates};
}

/// The devices that share a sample's work are busy for it together; one has the mean or more.
double PlanTree::samples_of_a_device(const WorkShape& shape) const {
  const double sharing =
      static_cast<double>(shape.degree(AxisRole::sequence) * shape.degree(AxisRole::tensor));
  return static_cast<double>(space_.base().batch.global) * sharing /
         static_cast<double>(space_.devices());
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
  std::map<std::pair<std::int64_t, bool>, WorkGroup> by_work;
  for (const Degrees& mesh : *node.meshes) {
    Plan plan = node.plan;
    plan.degrees = mesh;
    const std::int64_t leaves = leaves_of(mesh);
    for (const std::int64_t micro : space_.micro_batches_of(mesh)) {
      plan.micro_batch = micro;
      WorkGroup& group = by_work[{micro, micro_batches(plan) > 1}];
      group.meshes.push_back(mesh);
      group.leaves += leaves;
    }
  }
  // Two chains, with and without accumulation, each by rising micro-batch.
  std::array<std::vector<WorkGroup>, 2> chains;
  for (auto& [key, group] : by_work) {
    std::tie(group.micro_batch, group.accumulates) = key;
    chains[key.second ? 1 : 0].push_back(std::move(group));
  }
  for (std::vector<WorkGroup>& chain : chains) {
    if (chain.empty()) continue;
    Node child{.level = Level::work, .plan = node.plan};
    for (const WorkGroup& group : chain) child.leaves += group.leaves;
    WorkShape shape = shape_of(node.plan, chain.front());
    child.bound = shrunk(value_of(costs_->least_per_sample(shape) * samples_of_a_device(shape), 0));
    child.groups = std::make_shared<const std::vector<WorkGroup>>(std::move(chain));
    out.children.push_back(std::move(child));
  }
  return out;
}

PlanTree::Result PlanTree::cost_work(const Node& node) const {
  Result out;
  const WorkGroup& group = (*node.groups)[node.group];
  const std::shared_ptr<const CostedWork> work = costs_->work(shape_of(node.plan, group));
  if (static_cast<double>(work->most) > limit_) {
    // Larger micro-batches need more.
    out.bounded = node.leaves;
    return out;
  }
  Node rest = node;
  rest.leaves -= group.leaves;
  ++rest.group;
  if (rest.leaves > 0) out.children.push_back(std::move(rest));
  Node child = node;
  child.level = Level::costed_work;
  child.leaves = group.leaves;
  child.plan.micro_batch = group.micro_batch;
  const double samples = samples_of_a_device(work->shape);
  child.bound = shrunk(value_of(work->all / static_cast<double>(group.micro_batch) * samples,
                                static_cast<double>(work->most)));
  child.work = work;
  out.children.push_back(std::move(child));
  return out;
}

// --- meshes and pipelines

PlanTree::Result PlanTree::open_work(const Node& node) const {
  Result out;
  const CostedWork& work = *node.work;
  std::map<std::int32_t, std::vector<Degrees>> by_pipeline;
  for (const Degrees& mesh : (*node.groups)[node.group].meshes) {
    by_pipeline[mesh[at(AxisRole::layer)]].push_back(mesh);
  }
  for (auto& [degree, meshes] : by_pipeline) {
    Node child{.level = Level::mesh, .plan = node.plan, .work = node.work};
    for (const Degrees& mesh : meshes) child.leaves += leaves_of(mesh);
    if (child.leaves == 0) continue;
    child.plan.degrees = meshes.front();
    child.meshes = std::make_shared<const std::vector<Degrees>>(std::move(meshes));
    std::vector<double> steps = least_steps(work, child.plan);
    const double least = steps.empty() ? kNoBound : std::ranges::min(steps);
    // Schedules that exclude all of them are to say so.
    child.bound = shrunk(value_of(least == kNoBound ? 0 : least, static_cast<double>(work.most)));
    child.steps = std::make_shared<const std::vector<double>>(std::move(steps));
    out.children.push_back(std::move(child));
  }
  return out;
}

/// Seconds of a step over each of a mesh's pipelines, whatever the states; infinite: the schedule
/// needs what the mesh has not. The same on all meshes with its degree.
std::vector<double> PlanTree::least_steps(const CostedWork& work, const Plan& mesh) const {
  const std::int32_t degree = mesh.degree(AxisRole::layer);
  const std::int64_t m = micro_batches(mesh);
  std::vector<double> out;
  for (const PipelineChoice& choice : *costs_->pipelines(degree)) {
    const bool runs = degree == 1 || unmet_need(choice.shape->schedule, degree, m).empty();
    StepBound steps(facts_, *choice.shape, m);
    out.push_back(runs ? steps.least({&work.plain, &work.plain}, {}, {}) : kNoBound);
  }
  return out;
}

PlanTree::Result PlanTree::open_mesh(const Node& node) const {
  Result out;
  Node child = node;
  child.level = Level::costed_mesh;
  const StateRoom room{.bytes = limit_, .grows = grows_ && micro_batches(node.plan) == 1};
  child.states = costs_->states(node.plan, *node.meshes, room);
  child.bound = least_of_meshes(*node.work, *child.states, node.plan);
  if (child.states->refused > 0) {
    const std::int64_t pipelines = leaves_of_pipelines(node.plan.degree(AxisRole::layer));
    out.rejected["engine"] = child.states->refused * pipelines;
    child.leaves -= child.states->refused * pipelines;
  }
  out.children.push_back(std::move(child));
  return out;
}

/// Of all their plans; infinite where nothing fits.
double PlanTree::least_of_meshes(const CostedWork& work, const FittingStates& states,
                                 const Plan& mesh) const {
  const WholeModel model{.work = work.all,
                         .degree = mesh.degree(AxisRole::layer),
                         .micro_batches = micro_batches(mesh)};
  const bool grows = grows_ && model.micro_batches == 1;
  double least = kNoBound;
  for (const StateChoice& choice : states.choices) {
    const std::int64_t rest = least_mean_rest(model.degree, choice.whole, grows);
    const double step = least_mean_step(facts_, model, choice.whole);
    least = std::min(least, value_of(step, static_cast<double>(std::max(rest, work.most))));
  }
  return shrunk(least);
}

PlanTree::Result PlanTree::open_costed_mesh(const Node& node, double cutoff) const {
  Result out;
  const std::int64_t states = leaves_of_states(*node.meshes) - node.states->refused;
  const auto pipelines = costs_->pipelines(node.plan.degree(AxisRole::layer));
  std::shared_ptr<const CostedWork> recomputed;  // dear: not before some pipeline asks for it
  for (std::size_t k = 0; k < pipelines->size(); ++k) {
    const PipelineChoice& choice = (*pipelines)[k];
    Node child = node;
    child.level = Level::pipeline;
    child.step = (*node.steps)[k];
    child.steps = nullptr;
    child.plan.schedule = choice.schedule;
    child.plan.split = choice.split;
    child.pipeline = choice.shape;
    child.leaves = states * static_cast<std::int64_t>(choice.shape->recomputations.size());
    if (child.step == kNoBound) {
      out.rejected["schedule"] += child.leaves;
      continue;
    }
    const BoundedStates any = bounded_states(child, child.states->least);
    if (any.least > cutoff) {
      out.bounded += child.leaves;
      continue;
    }
    if (!recomputed) recomputed = costs_->recomputed(*node.work);
    child.work = recomputed;
    child.bound = bound_by_device(child, any);
    out.children.push_back(std::move(child));
  }
  return out;
}

// --- plans

/// Whether the constraints of memory let it be a plan, as far as it was judged.
bool PlanTree::is_allowed(const Derivation& derivation) const {
  if (!runs(derivation) || static_cast<double>(in_bytes(most_needed(derivation))) > limit_) {
    return false;
  }
  return space_.constraints().allows_tight ||
         std::ranges::none_of(derivation.memory, &MemoryClass::gives_back);
}

EvaluatedPlan PlanTree::evaluate(const Plan& plan, double cutoff) const {
  Workbench& bench = benches_.local();
  bench.job.batch.global = space_.base().batch.global;
  space_.apply(plan, bench.job);
  const Prepared& prepared = bench.prepared[at(plan.recompute)];
  const auto moments =
      costs_->moments(bench.job.schedule, plan.degree(AxisRole::layer), micro_batches(plan));
  WholeDerivation whole = derive_all(bench.job, prepared, *moments);
  Derivation& derivation = whole.derivation;
  const TimeDerivation& time = whole.time;
  EvaluatedPlan out{.peak = derivation.peak};
  for (const Finding& finding : derivation.findings) {
    if (finding.severity != Severity::error) continue;
    out.broken = finding.rule;
    return out;
  }
  // What is alive is a lower bound of what is needed, which is not known yet.
  const double least =
      value_of(in_seconds(time.step), static_cast<double>(in_bytes(derivation.peak)));
  out.needed = most_needed(derivation);
  if (!is_allowed(derivation) || least > cutoff) return out;
  judge_reserved(bench.job, prepared, derivation);
  out.needed = most_needed(derivation);
  out.cached = std::ranges::any_of(derivation.memory, &MemoryClass::gives_back);
  if (!is_allowed(derivation)) return out;
  out.found =
      FoundPlan{.value = value_of(in_seconds(time.step), static_cast<double>(in_bytes(out.needed))),
                .plan = plan,
                .placement = space_.placement_of(plan),
                .figures = {.step = time.step,
                            .peak = derivation.peak,
                            .needed = out.needed,
                            .fit = derivation.fit,
                            .sent = derivation.sent,
                            .tokens = time.tokens,
                            .utilisation = placet::utilisation(time)}};
  return out;
}

PlanTree::Result PlanTree::open_plan(const Node& node, double cutoff) const {
  Result out;
  const EvaluatedPlan judged = evaluate(node.plan, cutoff);
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
