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
  return *pipeline_leaves_.get(degree, [&] {
    std::int64_t leaves = 0;
    for (const std::int16_t word : space_.words_of(AxisRole::layer, degree)) {
      const auto splits = static_cast<std::int16_t>(space_.splits_of(degree, word).size());
      for (std::int16_t split = 0; split < splits; ++split) {
        Plan plan{.schedule = word, .split = split};
        plan.degrees[at(AxisRole::layer)] = degree;
        leaves += static_cast<std::int64_t>(recomputations_of(*pipeline_of(plan)).size());
      }
    }
    return leaves;
  });
}

std::int64_t PlanTree::leaves_of_states(const Degrees& mesh) const {
  return static_cast<std::int64_t>(space_.states_of(mesh).size() * space_.offloads().size());
}

/// Of one mesh, words of the inner axes and micro-batch.
std::int64_t PlanTree::leaves_of(const Degrees& mesh) const {
  return static_cast<std::int64_t>(space_.orders_of(mesh).size()) * leaves_of_states(mesh) *
         leaves_of_pipelines(mesh[at(AxisRole::layer)]);
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

std::vector<PlanSpace::Recomputation> PlanTree::recomputations_of(
    const PipelineShape& pipeline) const {
  return space_.recomputations(pipeline.most_blocks);
}

std::shared_ptr<const PipelineShape> PlanTree::pipeline_of(const Plan& plan) const {
  const std::tuple key(plan.degree(AxisRole::layer), plan.schedule, plan.split);
  return pipelines_.get(key, [&] {
    return pipeline_shape(space_, plan.degree(AxisRole::layer), plan.schedule, plan.split,
                          benches_.local().job);
  });
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
    std::int64_t leaves = 0;
    for (const Degrees& mesh : meshes) {
      leaves += leaves_of(mesh) * static_cast<std::int64_t>(space_.micro_batches_of(mesh).size());
    }
    const auto shared = std::make_shared<const std::vector<Degrees>>(std::move(meshes));
    Plan plan;
    plan.degrees = {1, 1, 1, inner[0], inner[1], inner[2]};
    for (const std::int16_t a : space_.words_of(AxisRole::sequence, inner[0])) {
      for (const std::int16_t e : space_.words_of(AxisRole::expert, inner[1])) {
        for (const std::int16_t t : space_.words_of(AxisRole::tensor, inner[2])) {
          plan.attention = a;
          plan.expert = e;
          plan.tensor = t;
          out.push_back({.leaves = leaves, .plan = plan, .meshes = shared});
        }
      }
    }
  }
  return out;
}

Opened<PlanTree::Node, FoundPlan> PlanTree::open(const Node& node, double cutoff) const {
  switch (node.level) {
    case Level::shape:
      return open_shape(node);
    case Level::work:
      return cost_work(node);
    case Level::costed_work:
      return open_work(node);
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
  for (auto& [key, meshes] : by_work) {
    Node child{.level = Level::work, .plan = node.plan};
    child.plan.micro_batch = key.first;
    child.accumulates = key.second;
    for (const Degrees& mesh : meshes) child.leaves += leaves_of(mesh);
    child.meshes = std::make_shared<const std::vector<Degrees>>(std::move(meshes));
    out.children.push_back(std::move(child));
  }
  return out;
}

PlanTree::Result PlanTree::cost_work(const Node& node) const {
  Workbench& bench = benches_.local();
  Work work{.shape = {.degrees = node.plan.degrees,
                      .attention = node.plan.attention,
                      .expert = node.plan.expert,
                      .tensor = node.plan.tensor,
                      .micro_batch = node.plan.micro_batch,
                      .accumulates = node.accumulates}};
  work.plain = plain_costs(space_, work.shape, bench);
  double all = 0;  // a micro-batch through all units, one after the other
  const Model& model = space_.base().model;
  for (const Unit& unit : model.units) {
    const UnitCost& cost = work.plain[index(unit.kind)];
    all += cost.forward + cost.backward;
  }
  // The devices that share a micro-batch's work are busy for it together; one has the mean or more.
  const double groups = static_cast<double>(space_.devices()) /
                        static_cast<double>(work.shape.degree(AxisRole::sequence) *
                                            work.shape.degree(AxisRole::tensor));
  const double passes =
      static_cast<double>(space_.base().batch.global) / static_cast<double>(node.plan.micro_batch);
  Result out;
  Node child = node;
  child.level = Level::costed_work;
  child.bound = shrunk(value_of(all * passes / groups, 0));
  child.work = std::make_shared<const Work>(std::move(work));
  out.children.push_back(std::move(child));
  return out;
}

// --- pipelines

PlanTree::Result PlanTree::open_work(const Node& node) const {
  Result out;
  Node costed = node;
  auto work = std::make_shared<Work>(*node.work);
  const std::vector<RecomputeWord>& words = space_.choices().recompute;
  for (std::size_t w = 0; w < words.size(); ++w) {
    const RecomputeWord& word = words[w];
    const auto same = std::find_if(
        words.begin(), words.begin() + static_cast<std::ptrdiff_t>(w),
        [&](const RecomputeWord& other) { return are_same(other.recompute, word.recompute); });
    if (word.recompute.kind == Recompute::Kind::none) {
      work->again.push_back(work->plain);
    } else if (same - words.begin() < static_cast<std::ptrdiff_t>(w)) {
      work->again.push_back(work->again[static_cast<std::size_t>(same - words.begin())]);
    } else {
      work->again.push_back(
          recomputed_costs(space_, work->shape, static_cast<std::int16_t>(w), benches_.local()));
    }
  }
  costed.work = std::move(work);
  for (const Degrees& mesh : *node.meshes) {
    Plan plan = node.plan;
    plan.degrees = mesh;
    for (const std::int16_t order : space_.orders_of(mesh)) {
      plan.order = order;
      add_pipelines(costed, plan, out);
    }
  }
  return out;
}

void PlanTree::add_pipelines(const Node& node, Plan plan, Result& out) const {
  const std::int32_t degree = plan.degree(AxisRole::layer);
  const std::int64_t m = micro_batches(plan);
  const std::int64_t states = leaves_of_states(plan.degrees);
  for (const std::int16_t word : space_.words_of(AxisRole::layer, degree)) {
    plan.schedule = word;
    const auto splits = static_cast<std::int16_t>(space_.splits_of(degree, word).size());
    for (plan.split = 0; plan.split < splits; ++plan.split) {
      const auto pipeline = pipeline_of(plan);
      const std::int64_t leaves =
          states * static_cast<std::int64_t>(recomputations_of(*pipeline).size());
      if (degree > 1 && !unmet_need(pipeline->schedule, degree, m).empty()) {
        out.rejected["schedule"] += leaves;
        continue;
      }
      const double step =
          StepBound(facts_, *pipeline, m).least({&node.work->plain, &node.work->plain}, {}, {});
      out.children.push_back({.bound = shrunk(value_of(step, 0)),
                              .leaves = leaves,
                              .level = Level::pipeline,
                              .plan = plan,
                              .work = node.work});
    }
  }
}

// --- states

PlanTree::Result PlanTree::open_pipeline(const Node& node, double cutoff) const {
  Result out;
  const auto pipeline = pipeline_of(node.plan);
  const std::int64_t m = micro_batches(node.plan);
  const auto held = held_of(*pipeline, m);
  struct Option {
    double step = 0;
    std::vector<std::int64_t> activations;
  };
  std::vector<Option> options;
  StepBound steps(facts_, *pipeline, m);
  for (const PlanSpace::Recomputation& choice : recomputations_of(*pipeline)) {
    Plan plan = node.plan;
    plan.recompute = choice.word;
    plan.count = choice.count;
    const Recompute recompute = space_.recompute_of(plan);
    const WorkPair work{&node.work->plain, &node.work->again[index(choice.word)]};
    options.push_back({.step = steps.least(work, recompute, {}),
                       .activations = least_activations(*pipeline, work, recompute, held)});
  }
  for (const std::int16_t state : space_.states_of(node.plan.degrees)) {
    for (const std::int16_t offload : space_.offloads()) {
      Node child = node;
      child.level = Level::states;
      child.leaves = static_cast<std::int64_t>(options.size());
      child.plan.state = state;
      child.plan.offload = offload;
      const auto states = states_of(child.plan);
      const auto rest = least_rest(*pipeline, *states, grows_ && m == 1);
      const double more =
          update_of(*pipeline, *states) + least_messages(facts_, *pipeline, *states, m);
      child.bound = kNoBound;
      for (const Option& option : options) {
        std::int64_t bytes = 0;
        for (std::size_t d = 0; d < rest.size(); ++d) {
          bytes = std::max(bytes, rest[d] + option.activations[d]);
        }
        if (static_cast<double>(bytes) > limit_) continue;
        child.bound =
            std::min(child.bound, shrunk(value_of(option.step + more, static_cast<double>(bytes))));
      }
      if (child.bound > cutoff) {
        out.bounded += child.leaves;
      } else {
        out.children.push_back(std::move(child));
      }
    }
  }
  return out;
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
  const auto pipeline = pipeline_of(node.plan);
  const std::int64_t m = micro_batches(node.plan);
  const auto held = held_of(*pipeline, m);
  const auto rest = least_rest(*pipeline, *states_of(node.plan), grows_ && m == 1);
  job.batch.global = space_.base().batch.global;
  space_.apply(node.plan, job);
  job.recompute = {};
  const StepCosts messages = messages_of(*pipeline, job);
  std::map<std::int16_t, std::string> broken;
  StepBound steps(facts_, *pipeline, m);
  for (const PlanSpace::Recomputation& choice : recomputations_of(*pipeline)) {
    Node child = node;
    child.level = Level::plan;
    child.leaves = 1;
    child.plan.recompute = choice.word;
    child.plan.count = choice.count;
    const Recompute recompute = space_.recompute_of(child.plan);
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
    std::int64_t bytes = 0;
    for (std::size_t d = 0; d < rest.size(); ++d) {
      bytes = std::max(bytes, rest[d] + activations[d]);
    }
    child.least_memory = placet::bytes(bytes);
    child.bound =
        static_cast<double>(bytes) > limit_
            ? kNoBound
            : shrunk(value_of(steps.least(work, recompute, messages), static_cast<double>(bytes)));
    if (child.bound > cutoff) {
      ++out.bounded;
    } else {
      child.work.reset();
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
  out.found = std::move(found);
  return out;
}

PlanTree::Result PlanTree::open_plan(const Node& node) const {
  Result out;
  EvaluatedPlan judged = evaluate(node.plan);
  if (!judged.broken.empty()) {
    out.rejected[judged.broken] = 1;
    return out;
  }
  ensure(node.least_memory <= judged.peak, "a bound of memory is never above the memory");
  out.visited = 1;
  out.answer = std::move(judged.found);
  return out;
}

}  // namespace placet
