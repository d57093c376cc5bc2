#include "search/brute_force.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "catalog/choices_catalog.h"
#include "catalog/job.h"
#include "catalog/profile_catalog.h"
#include "catalog/strategy_catalog.h"
#include "catalog/training_catalog.h"
#include "derive/derive.h"
#include "derive/time.h"
#include "model/frozen_parts.h"
#include "placement/grammar.h"
#include "search/front.h"
#include "units/error.h"

namespace placet::testing {
namespace {

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}
  std::int64_t whole(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  bool one_in(std::int64_t n) { return whole(1, n) == 1; }
  /// From 1/by to by, evenly in the logarithm.
  double around(double by) {
    return std::exp(std::uniform_real_distribution<double>(-std::log(by), std::log(by))(random_));
  }
  std::vector<bool> some(std::size_t count, std::size_t most) {
    std::vector<bool> out(count, false);
    for (std::size_t i = 0; i < most; ++i) {
      out[static_cast<std::size_t>(whole(0, static_cast<std::int64_t>(count) - 1))] = true;
    }
    return out;
  }

 private:
  std::mt19937 random_;
};

/// Keeps the first blocks of a model.
void cut_short(Model& model, std::int64_t blocks) {
  std::int64_t seen = 0;
  std::erase_if(model.units, [&](const Unit& unit) {
    return model.kinds[static_cast<std::size_t>(unit.kind)].role == UnitRole::block &&
           ++seen > blocks;
  });
}

/// Half of the jobs train the whole model.
void draw_training(Draw& draw, Model& model, std::int64_t blocks) {
  if (draw.one_in(2)) return;
  const auto part = kFrozenParts[static_cast<std::size_t>(draw.whole(1, kFrozenParts.size() - 1))];
  model = with_frozen_part(std::move(model), part, draw.whole(1, blocks));
}

void draw_rates(Draw& draw, DeviceRates& rates) {
  for (FlopsPerSecond& rate : rates.matmul) rate = rate * draw.around(4);
  rates.memory = rates.memory * draw.around(4);
  rates.message_share = draw.one_in(3) ? 0 : 0.3 * draw.around(3);
}

/// Makes the last devices another group, faster or slower.
void divide_in_two(Draw& draw, Cluster& cluster) {
  DeviceGroup& first = cluster.groups.front();
  DeviceGroup second = first;
  second.count = draw.whole(1, first.count - 1);
  first.count -= second.count;
  draw_rates(draw, second.device.rates);
  second.host_link = second.host_link * draw.around(4);
  second.host_per_member = microseconds(static_cast<double>(draw.whole(0, 100)));
  for (Level& level : second.levels) level.bandwidth = level.bandwidth * draw.around(10);
  cluster.between_groups = first.levels.back();
  cluster.between_groups.bandwidth = cluster.between_groups.bandwidth * draw.around(10);
  cluster.between_groups.devices = first.count + second.count;
  for (DeviceGroup* group : {&first, &second}) {
    group->per_host = std::min(group->per_host, group->count);
    for (Level& level : group->levels) level.devices = std::min(level.devices, group->count);
  }
  cluster.groups.push_back(std::move(second));
}

void draw_cluster(Draw& draw, Job& job) {
  constexpr std::array kDevices = {1, 2, 3, 4, 6, 8, 12, 16};
  const auto devices = kDevices[static_cast<std::size_t>(draw.whole(0, kDevices.size() - 1))];
  DeviceGroup& group = job.cluster->groups.front();
  group.count = devices;
  group.per_host = std::min<std::int64_t>(group.per_host, devices);
  group.host_memory = bytes(draw.whole(1, 2000) * 1'000'000'000);
  group.host_link = group.host_link * draw.around(4);
  std::int64_t inside = draw.one_in(2) ? 2 : 4;
  for (Level& level : group.levels) {
    level.devices = std::min<std::int64_t>(inside, devices);
    level.bandwidth = level.bandwidth * draw.around(30);
    level.latency = level.latency * draw.around(10);
    level.all_reduce.clear();
    inside = devices;
  }
  draw_rates(draw, group.device.rates);
  if (devices > 1 && draw.one_in(3)) divide_in_two(draw, *job.cluster);
}

/// A condition on cuts, states or what is chosen beside them.
When draw_condition(Draw& draw) {
  constexpr std::array kCuts = {Cut::batch, Cut::tensor, Cut::sequence, Cut::layer, Cut::expert};
  constexpr std::array kModes = {Mode::replicated, Mode::sharded, Mode::sharded_gather};
  When out;
  if (!draw.one_in(4)) out.cuts = {kCuts[static_cast<std::size_t>(draw.whole(0, 4))]};
  if (draw.one_in(2)) {
    out.states = {{.state = kStates[static_cast<std::size_t>(draw.whole(0, 3))],
                   .modes = {kModes[static_cast<std::size_t>(draw.whole(0, 2))]}}};
  }
  if (draw.one_in(4)) out.absent = true;
  if (draw.one_in(4)) out.accumulates = draw.one_in(2);
  if (draw.one_in(4)) out.recomputes = draw.one_in(2);
  if (draw.one_in(4)) out.exchanges_heads = draw.one_in(2);
  if (draw.one_in(4)) out.states_stages = draw.one_in(2);
  if (draw.one_in(4)) out.uneven_stages = draw.one_in(2);
  if (draw.one_in(4)) out.recomputes_every = draw.one_in(2);
  if (draw.one_in(4)) out.offloads = State::optimizer;
  if (draw.one_in(6)) out.keeps = {draw.one_in(2) ? Keep::step : Keep::backward};
  if (draw.one_in(6)) out.exchange_beyond = {"ring"};
  if (draw.one_in(6)) out.recompute_beyond = {RecomputeKind::none, RecomputeKind::full};
  if (draw.one_in(6)) out.order = CutsInOrder{.outer = Cut::batch, .inner = Cut::layer};
  return out;
}

/// Engines that deal blocks by cost may leave stages without any.
void draw_engine(Draw& draw, Profile& profile) {
  if (draw.one_in(3)) {
    std::vector<When> when{draw_condition(draw)};
    if (draw.one_in(2)) when.push_back(draw_condition(draw));
    profile.refusals.push_back(
        {.what = "drawn", .cure = {}, .when = std::move(when), .source = {}});
  }
  constexpr std::array kCuts = {StageCut::weighed, StageCut::by_cost, StageCut::by_cost_late};
  if (draw.one_in(3)) {
    profile.stage_cut = kCuts[static_cast<std::size_t>(draw.whole(0, kCuts.size() - 1))];
  }
  if (draw.one_in(3)) profile.gradient_life = GradientLife::growing;
  EngineTiming& timing = profile.timing;
  timing.overlaps = static_cast<std::uint16_t>(draw.whole(0, (1 << kOverlapCount) - 1));
  timing.sends_block = draw.one_in(2);
  timing.update_in_steps = draw.one_in(3);
  timing.host_per_launch = timing.host_per_launch * draw.around(20);
  timing.host_per_pass = microseconds(static_cast<double>(draw.whole(0, 1000)));
  timing.host_per_step = microseconds(static_cast<double>(draw.whole(0, 10000)));
}

/// Gradients may be reduced in fewer bits than they rest in, later than the placement says, and be
/// added up in these meanwhile.
void draw_sums(Draw& draw, Job& base) {
  if (!draw.one_in(3)) return;
  base.precision.gradients = Dtype::fp32;
  base.precision.reduce = Dtype::bf16;
  base.profile.fuses_weight_gradient = draw.one_in(3);
  base.profile.defers_scatter = draw.one_in(2);
  base.profile.layer_cut_defers_sharding = !base.profile.defers_scatter;
  base.profile.defers_as_reduced = true;
}

/// What is recomputed may be settled, a number of units included.
void draw_recompute(Draw& draw, Choices& choices) {
  if (!draw.one_in(6)) return;
  const auto kind = draw.one_in(2) ? Recompute::Kind::every : Recompute::Kind::first;
  choices.recompute = {{.text = "settled", .recompute = {.kind = kind, .count = draw.whole(1, 3)}}};
}

PlanConstraints draw_constraints(Draw& draw, const Choices& choices) {
  PlanConstraints out;
  const auto words = [&](AxisRole role, std::size_t most) {
    out.words[role] = draw.some(choices.roles[at(role)].words.size(), most);
  };
  words(AxisRole::layer, 3);
  words(AxisRole::sequence, 1);
  words(AxisRole::tensor, 2);
  out.states = draw.some(choices.states.size(), 3);
  out.offloads = draw.some(choices.offloads.size(), 1);
  out.recompute = draw.some(choices.recompute.size(), 2);
  out.allows_tight = draw.one_in(2);
  if (!out.allows_tight) out.memory_fraction = 1 - kFitMargin;
  return out;
}

/// Every plan of a space, loop by loop.
class EveryPlan {
 public:
  explicit EveryPlan(const PlanSpace& space) : space_(space) {}

  std::vector<Plan> all() {
    for (const Degrees& mesh : space_.meshes()) {
      Plan plan;
      plan.degrees = mesh;
      for (plan.micro_batch = 1; plan.micro_batch <= space_.base().batch.global;
           ++plan.micro_batch) {
        const std::int64_t ways = std::int64_t{mesh[at(AxisRole::replica)]} *
                                  mesh[at(AxisRole::batch)] * mesh[at(AxisRole::expert)];
        if (space_.base().batch.global % (ways * plan.micro_batch) == 0) add_words(plan);
      }
    }
    return std::move(out_);
  }

 private:
  void add_words(Plan plan) {
    for (const auto attention : space_.words_of(AxisRole::sequence, plan.degrees[3])) {
      for (const auto tensor : space_.words_of(AxisRole::tensor, plan.degrees[5])) {
        for (const auto order : space_.orders_of(plan.degrees)) {
          plan.attention = attention;
          plan.tensor = tensor;
          plan.order = order;
          add_pipelines(plan);
        }
      }
    }
  }

  void add_pipelines(Plan plan) {
    for (const auto schedule : space_.words_of(AxisRole::layer, plan.degrees[0])) {
      const auto splits = space_.splits_of(plan.degrees[0], schedule);
      for (std::size_t split = 0; split < splits.size(); ++split) {
        plan.schedule = schedule;
        plan.split = static_cast<std::int16_t>(split);
        add_states(plan);
      }
    }
  }

  void add_states(Plan plan) {
    Job job = space_.base();
    const PipelineShape pipeline =
        pipeline_shape(space_, plan.degrees[0], plan.schedule, plan.split, job);
    for (const auto state : space_.states_of(plan.degrees)) {
      for (const auto offload : space_.offloads()) {
        for (const auto& choice : pipeline.recomputations) {
          plan.state = state;
          plan.offload = offload;
          plan.recompute = choice.word;
          plan.count = choice.count;
          out_.push_back(plan);
        }
      }
    }
  }

  const PlanSpace& space_;
  std::vector<Plan> out_;
};

/// Of all plans those that fit, each judged on its own, the best first.
std::vector<FoundPlan> judge_all(const PlanSpace& space, const PlanOptions& options,
                                 const std::vector<Plan>& plans) {
  const PlanTree tree(space, options.goal);
  std::vector<FoundPlan> found;
  for (const Plan& plan : plans) {
    EvaluatedPlan judged = tree.evaluate(plan);
    if (judged.found) found.push_back(*judged.found);
  }
  std::ranges::sort(found, [](const FoundPlan& a, const FoundPlan& b) { return a < b; });
  return found;
}

/// The best plan of each of the best placements.
std::vector<FoundPlan> best_of(const std::vector<FoundPlan>& all, std::size_t top) {
  std::vector<FoundPlan> out;
  for (const FoundPlan& one : all) {
    const bool known =
        std::ranges::any_of(out, [&](const FoundPlan& other) { return other.same_as(one); });
    if (!known && out.size() < top) out.push_back(one);
  }
  return out;
}

/// Plans that none beats in time and memory, the fastest first: each needs less memory than all
/// that are faster.
std::vector<Plan> unbeaten(const std::vector<FoundPlan>& by_time, std::size_t most) {
  std::vector<Plan> out;
  Bytes least;
  for (const FoundPlan& one : by_time) {
    if (!out.empty() && one.figures.needed >= least) continue;
    least = one.figures.needed;
    if (out.size() < most) out.push_back(one.plan);
  }
  return out;
}

/// Whether the front of any less memory is the set of plans that none beats.
bool has_the_front(const PlanSpace& space, const PlanOptions& options,
                   const std::vector<FoundPlan>& by_time) {
  constexpr std::size_t kMost = 5;
  if (options.goal != PlanGoal::time || by_time.empty()) return true;
  std::vector<Plan> found;
  for (const FoundPlan& one :
       front_of(space, by_time.front(), options, {.most = kMost, .step = 0}).plans) {
    found.push_back(one.plan);
  }
  return found == unbeaten(by_time, kMost);
}

/// A capacity that some plans keep and others do not: the peak of one of them.
void draw_capacity(Draw& draw, const PlanSpace& space, const std::vector<Plan>& plans, Job& base) {
  const Plan& one =
      plans[static_cast<std::size_t>(draw.whole(0, static_cast<std::int64_t>(plans.size()) - 1))];
  const Bytes peak = PlanTree(space, PlanGoal::time).evaluate(one).peak;
  if (peak > Bytes()) base.cluster->groups.front().device.memory = peak;
}

std::string difference(const std::vector<FoundPlan>& expected, const PlanResult& found,
                       std::size_t plans) {
  std::int64_t counted = found.counts.visited + found.counts.bounded;
  for (const auto& [rule, count] : found.counts.rejected) counted += count;
  if (counted != static_cast<std::int64_t>(plans)) {
    return std::to_string(counted) + " plans counted, there are " + std::to_string(plans);
  }
  if (expected.size() != found.plans.size()) return "another number of plans";
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].plan != found.plans[i].plan || expected[i].value != found.plans[i].value) {
      return "another plan stands at " + std::to_string(i);
    }
  }
  return {};
}

/// A plan whose placement is printed and read again must have the same figures.
std::string read_again(const PlanSpace& space, const StrategyCatalog& strategies,
                       const FoundPlan& found) {
  Job job = space.base();
  space.apply(found.plan, job);
  const std::string text = print_placement(job.placement, strategies.vocabulary);
  job.placement = parse_placement(text, strategies.vocabulary);
  job.schedule = schedule_of(strategies, job.placement);
  job.attention = attention_of(strategies, job.placement);
  const Derivation derivation = derive(job);
  const TimeDerivation time = derive_time(job);
  const bool same = derivation.peak == found.figures.peak &&
                    most_needed(derivation) == found.figures.needed &&
                    derivation.fit == found.figures.fit && derivation.sent == found.figures.sent &&
                    time.step == found.figures.step;
  return same && runs(derivation) ? "" : "figures differ once read again: " + text;
}

}  // namespace

SmallSpaces::SmallSpaces()
    : catalog_(find_catalog()),
      strategies_(load_strategies(catalog_)),
      choices_(load_choices(catalog_, strategies_, "all")) {
  for (const char* name :
       {"gpt2", "llama-3.2-1b", "qwen3-0.6b", "olmoe-1b-7b", "deepseek-v2-lite", "gemma-2-2b"}) {
    JobRequest request{.model = name, .cluster = "h100-sxm:2", .global_batch = 1};
    request.sequence = 512;
    jobs_.push_back(load_unplaced_job(catalog_, request));
  }
  for (const std::string& name : profile_names_with_options(catalog_)) {
    profiles_.push_back(load_profile(catalog_, name, "a test"));
  }
  for (const std::string& name : names_in(catalog_, "optimizers")) {
    optimizers_.push_back(load_optimizer(catalog_, name, "a test"));
  }
}

Comparison SmallSpaces::compare(std::uint32_t seed) const {
  Draw draw(seed);
  Job base =
      jobs_[static_cast<std::size_t>(draw.whole(0, static_cast<std::int64_t>(jobs_.size()) - 1))];
  const std::int64_t blocks = draw.whole(1, 6);
  cut_short(base.model, blocks);
  draw_training(draw, base.model, blocks);
  base.batch.sequence = 256 << draw.whole(0, 2);
  base.batch.global = draw.whole(1, 24);
  base.clips_by_global_norm = draw.one_in(2);
  draw_cluster(draw, base);
  if (draw.one_in(3)) {
    const std::int64_t last = static_cast<std::int64_t>(profiles_.size()) - 1;
    base.profile = profiles_[static_cast<std::size_t>(draw.whole(0, last))];
  }
  draw_engine(draw, base.profile);
  // Apart from the others, so that these stay as they are.
  Draw sums(~seed);
  draw_sums(sums, base);
  const std::int64_t last_optimizer = static_cast<std::int64_t>(optimizers_.size()) - 1;
  base.optimizer = optimizers_[static_cast<std::size_t>(draw.whole(0, last_optimizer))];
  Choices choices = choices_;
  draw_recompute(draw, choices);
  const PlanSpace space(base, choices, draw_constraints(draw, choices));
  const PlanOptions options{.goal = draw.one_in(4) ? PlanGoal::memory : PlanGoal::time,
                            .top = static_cast<std::size_t>(draw.whole(1, 5))};
  const std::vector<Plan> plans = EveryPlan(space).all();
  constexpr std::size_t kMostPlans = 4000;
  if (plans.empty() || plans.size() > kMostPlans) return {};
  draw_capacity(draw, space, plans, base);
  const std::vector<FoundPlan> all = judge_all(space, options, plans);
  const std::vector<FoundPlan> expected = best_of(all, options.top);
  const PlanResult found = find_plans(space, options);
  Comparison out{.difference = difference(expected, found, plans.size()),
                 .plans = plans.size(),
                 .fit = expected.size()};
  if (out.difference.empty() && !has_the_front(space, options, all)) {
    out.difference = "another front of time and memory";
  }
  for (const FoundPlan& plan : found.plans) {
    if (out.difference.empty()) out.difference = read_again(space, strategies_, plan);
  }
  if (!out.difference.empty())
    out.difference = "seed " + std::to_string(seed) + ": " + out.difference;
  return out;
}

Comparison SmallSpaces::compare_or_say(std::uint32_t seed) const {
  try {
    return compare(seed);
  } catch (const InternalError& error) {
    return {.difference = "seed " + std::to_string(seed) + ": " + error.what()};
  }
}

std::string SmallSpaces::compare_all(std::uint32_t first, std::uint32_t last) const {
  std::size_t searched = 0;
  std::size_t with_plans = 0;
  for (std::uint32_t seed = first; seed <= last; ++seed) {
    const Comparison own = compare_or_say(seed);
    if (!own.difference.empty()) return own.difference;
    searched += own.plans > 0;
    with_plans += own.fit > 0;
  }
  if (5 * searched < 4 * (last - first)) return "too few spaces are searched";
  return 2 * with_plans >= searched ? "" : "too few spaces have a plan";
}

}  // namespace placet::testing
