#include "derive/random_jobs.h"

#include <algorithm>
#include <numeric>

#include "catalog/model_catalog.h"
#include "catalog/profile_catalog.h"
#include "catalog/training_catalog.h"
#include "placement/grammar.h"

namespace placet::testing {
namespace {

constexpr std::int64_t kMostStages = 48;  // devices of a pipeline

std::int64_t blocks_of(const Model& model) {
  return std::max<std::int64_t>(1, model.figures.blocks);
}

bool has_experts(const Model& model) { return model.figures.experts > 0; }

std::int64_t layer_degree(const Placement& placement) {
  std::int64_t degree = 1;
  for (const AxisPlacement& axis : placement.axes) {
    if (axis.how.cut == Cut::layer) degree *= axis.degree;
  }
  return degree;
}

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 2; d <= std::min<std::int64_t>(n, 96); ++d) {
    if (n % d == 0) out.push_back(d);
  }
  if (out.empty()) out.push_back(2);
  return out;
}

}  // namespace

RandomJobs::RandomJobs(std::uint32_t seed, JobLimits limits)
    : generator_(seed),
      limits_(limits),
      catalog_(find_catalog()),
      strategies_(load_strategies(catalog_)),
      models_(model_names(catalog_)) {
  profiles_.push_back(load_profile(catalog_, "placet", "test"));
  for (const std::string& name : profile_names_with_options(catalog_)) {
    if (!name.starts_with("placet@")) profiles_.push_back(load_profile(catalog_, name, "test"));
  }
  for (const std::string& name : names_in(catalog_, "optimizers")) {
    optimizers_.push_back(load_optimizer(catalog_, name, "test"));
  }
  for (const std::string& name : names_in(catalog_, "precisions")) {
    Precision precision = load_precision(catalog_, name, {}, "test").precision;
    // Copies of inputs in the products' format have tests of their own: programs have none.
    if (!precision.products) precisions_.push_back(std::move(precision));
  }
}

Model RandomJobs::model(const std::string& name) const { return load_model(catalog_, name); }

std::int64_t RandomJobs::pick(std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(least, most)(generator_);
}

std::vector<Mode> RandomJobs::meaningful_modes(Cut cut, State state) {
  std::vector<Mode> modes;
  for (int m = 0; m < 5; ++m) {
    if (is_meaningful(cut, state, static_cast<Mode>(m))) modes.push_back(static_cast<Mode>(m));
  }
  return modes;
}

Cut RandomJobs::any_cut(const Model& model) {
  switch (pick(0, has_experts(model) ? 8 : 7)) {
    case 0:
    case 1:
    case 2:
      return Cut::batch;
    case 3:
    case 4:
      return Cut::tensor;
    case 5:
      return Cut::sequence;
    case 6:
    case 7:
      return Cut::layer;
    default:
      return one_in(6) ? Cut::expert : Cut::batch;
  }
}

std::int64_t RandomJobs::any_degree(const Model& model, Cut cut) {
  if (one_in(8)) return pick(1, 13);
  switch (cut) {
    case Cut::batch:
      return one_in(6) ? pick(17, 300) : pick(1, 16);
    case Cut::sequence:
      return pick(1, 8);
    case Cut::layer:
      return pick(1, std::min<std::int64_t>(blocks_of(model), 12));
    case Cut::tensor:
      return any_of(divisors(std::max<std::int64_t>(1, model.figures.heads)));
    case Cut::expert:
      return any_of(divisors(std::max<std::int64_t>(1, model.figures.experts)));
  }
  return 1;
}

Modes RandomJobs::any_modes(Cut cut) {
  const auto mode = [&](State state) {
    if (!limits_.meaningful) return static_cast<Mode>(pick(0, 4));
    const std::vector<Mode> modes = meaningful_modes(cut, state);
    return one_in(2) ? modes.front() : any_of(modes);
  };
  return {mode(State::parameters), mode(State::optimizer), mode(State::gradients),
          mode(State::activations)};
}

void RandomJobs::add_options(How& how) {
  if (one_in(5)) how.keep = one_in(2) ? Keep::backward : Keep::step;
  if (one_in(6)) how.prefetch = pick(0, 3);
  for (auto& offload : how.offload) {
    if (!one_in(12)) continue;
    const std::int64_t denominator = pick(1, 9);
    offload = Offload{.medium = one_in(2) ? Medium::host : Medium::nvme,
                      .fraction = Rational(pick(1, denominator), denominator)};
  }
  if (one_in(10)) how.update = one_in(2) ? Medium::host : Medium::device;
}

How RandomJobs::any_how(Cut cut) {
  How how;
  how.cut = cut;
  how.modes = any_modes(cut);
  if (one_in(3)) add_options(how);
  if (cut == Cut::tensor && one_in(8)) {
    how.tensor_indices = bit_of(Index::hidden);
    if (how.modes.optimizer == Mode::sharded) how.tensor_indices |= kTensorIndices;
    how.modes.activations = Mode::replicated;  // the stream is divided already
  }
  return how;
}

void RandomJobs::add_shares(const Model& model, AxisPlacement& axis) {
  if (axis.degree > 24) return;
  if (axis.how.cut != Cut::layer) {
    for (std::int64_t i = 0; i < axis.degree; ++i) axis.shares.push_back(pick(1, 5));
    return;
  }
  std::int64_t left = blocks_of(model);
  if (left < axis.degree || axis.schedule) return;
  for (std::int64_t i = 0; i + 1 < axis.degree; ++i) {
    const std::int64_t even = left / (axis.degree - i);
    const std::int64_t share = std::max<std::int64_t>(1, even + pick(-1, 1));
    axis.shares.push_back(std::min(share, left - (axis.degree - 1 - i)));
    left -= axis.shares.back();
  }
  axis.shares.push_back(left);
}

Override RandomJobs::any_override(const Model& model, const AxisPlacement& axis) {
  const Cut cut = axis.how.cut;
  if (cut == Cut::tensor && one_in(4)) {
    How how = axis.how;
    how.modes.activations = any_of(std::vector<Mode>{Mode::sharded_gather, Mode::offloaded});
    return {.selector = Checkpoints{}, .how = how};
  }
  if (has_experts(model) && cut != Cut::layer && one_in(2)) {
    const bool expert = one_in(3) ? false : true;
    // Where the axis divides samples, its experts see the same ones.
    const Cut samples = cut == Cut::sequence && limits_.meaningful ? Cut::sequence : Cut::batch;
    return {.selector = TensorClass::experts, .how = any_how(expert ? Cut::expert : samples)};
  }
  if (one_in(3)) {
    const std::int64_t first = pick(0, blocks_of(model));
    const std::int64_t last = first + pick(0, blocks_of(model));
    How how = any_how(cut);
    if (cut == Cut::tensor && limits_.meaningful) {
      // The columns of the stream are cut for all blocks or for none.
      const IndexSet hidden = bit_of(Index::hidden);
      how.tensor_indices = (how.tensor_indices & ~hidden) | (axis.how.tensor_indices & hidden);
      if (how.tensor_indices == 0) how.tensor_indices = axis.how.tensor_indices;
    }
    return {.selector = BlockRange{first, last}, .how = how};
  }
  How how = any_how(limits_.meaningful ? cut : static_cast<Cut>(pick(0, kCutCount - 1)));
  if (cut == Cut::tensor && limits_.meaningful) {
    how.tensor_indices = axis.how.tensor_indices;
    how.modes.activations = axis.how.modes.activations;
  }
  return {.selector = static_cast<TensorClass>(pick(0, kTensorClassCount - 1)), .how = how};
}

void RandomJobs::add_overrides(const Model& model, AxisPlacement& axis) {
  if (has_experts(model) && axis.how.cut == Cut::batch && one_in(3)) {
    axis.overrides.push_back({.selector = TensorClass::experts, .how = any_how(Cut::expert)});
  }
  if (!one_in(4)) return;
  for (std::int64_t i = pick(1, 2); i > 0; --i) {
    axis.overrides.push_back(any_override(model, axis));
  }
}

AxisPlacement RandomJobs::any_axis(const Model& model, std::int64_t number) {
  AxisPlacement axis;
  axis.axis = AxisName("a" + std::to_string(number));
  const Cut cut = any_cut(model);
  axis.degree = any_degree(model, cut);
  // Dense work has no experts: it sees samples where they are divided.
  const bool for_experts = limits_.meaningful && cut == Cut::expert;
  axis.how = any_how(for_experts ? Cut::batch : cut);
  if (for_experts) {
    axis.overrides.push_back({.selector = TensorClass::experts, .how = any_how(Cut::expert)});
  }
  add_overrides(model, axis);
  if (cut == Cut::sequence && one_in(2)) {
    auto exchange = strategies_.attention.begin();
    std::advance(exchange, pick(0, static_cast<std::int64_t>(strategies_.attention.size()) - 1));
    axis.attention = RealisationWord{.word = exchange->first, .arguments = {}};
  }
  return axis;
}

Placement RandomJobs::any_placement(const Model& model) {
  Placement placement;
  std::optional<RealisationWord> schedule;
  if (one_in(2)) {
    auto found = strategies_.schedules.begin();
    std::advance(found, pick(0, static_cast<std::int64_t>(strategies_.schedules.size()) - 1));
    schedule = RealisationWord{.word = found->first, .arguments = {}};
    if (!found->second.arguments.empty()) schedule->arguments.push_back(pick(2, 4));
  }
  std::int64_t devices = 1;
  for (std::int64_t i = pick(0, limits_.most_axes); i > 0; --i) {
    AxisPlacement axis = any_axis(model, i);
    const bool layer = axis.how.cut == Cut::layer;
    if (devices * axis.degree > limits_.most_devices) continue;
    if (layer && layer_degree(placement) * axis.degree > kMostStages) continue;
    devices *= axis.degree;
    const bool second = layer && layer_degree(placement) > 1;
    if (layer && !second) axis.schedule = schedule;
    if (!second && one_in(8)) add_shares(model, axis);
    placement.axes.push_back(std::move(axis));
  }
  if (layer_degree(placement) > 1) {
    // Shares of a layer axis count the blocks of the whole pipeline.
    for (AxisPlacement& axis : placement.axes) {
      const bool alone = axis.degree == layer_degree(placement);
      if (axis.how.cut == Cut::layer && !alone) axis.shares.clear();
    }
  }
  return placement;
}

Recompute RandomJobs::any_recompute() {
  Recompute recompute;
  switch (pick(0, 6)) {
    case 0:
      recompute.kind = Recompute::Kind::full;
      break;
    case 1:
      recompute = {.kind = Recompute::Kind::every, .count = pick(1, 4)};
      break;
    case 2:
      recompute = {.kind = Recompute::Kind::first, .count = pick(1, 20)};
      break;
    case 3:
      recompute.kind = Recompute::Kind::selective;
      for (int module = 0; module < kModuleCount; ++module) {
        if (one_in(4)) recompute.modules.push_back(static_cast<Module>(module));
      }
      break;
    default:
      break;
  }
  return recompute;
}

Batch RandomJobs::any_batch(const Job& job) {
  Batch batch;
  batch.micro = pick(1, 4);
  batch.sequence = one_in(6) ? pick(1, 3000) : 128 * pick(1, 64);
  std::int64_t ways = 1;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.cut == Cut::batch || axis.how.cut == Cut::expert) ways *= axis.degree;
  }
  batch.global = one_in(8) ? pick(1, 10'000) : batch.micro * ways * pick(1, 9);
  return batch;
}

void RandomJobs::choose_training(Job& job) {
  job.profile = limits_.engines && one_in(3) ? any_of(profiles_) : profiles_.front();
  job.engine_text = job.profile.name + "@" + job.profile.version;
  job.precision = one_in(2) ? job.profile.precision : any_of(precisions_);
  job.optimizer = any_of(optimizers_);
  job.recompute = any_recompute();
  job.routing = {.kind = static_cast<Routing::Kind>(pick(0, 2)),
                 .skew = 1.0 + 0.25 * static_cast<double>(pick(0, 4))};
  job.clips_by_global_norm = one_in(2);
  job.scales_loss_dynamically = one_in(6);
  job.host_runs_ahead = one_in(4);
}

void RandomJobs::place(Job& job) {
  job.placement = any_placement(job.model);
  job.placement_text.clear();
  job.schedule = schedule_of(strategies_, job.placement);
  job.attention = attention_of(strategies_, job.placement);
  choose_training(job);
  job.batch = any_batch(job);
}

std::string RandomJobs::describe(const Job& job) const {
  std::string text = "placet derive " + job.model.name + " --placement \"" +
                     print_placement(job.placement, strategies_.vocabulary) + "\" --seq " +
                     std::to_string(job.batch.sequence) + " --global-batch " +
                     std::to_string(job.batch.global) + " --micro-batch " +
                     std::to_string(job.batch.micro) + " --engine " + job.engine_text +
                     " --precision " + job.precision.name + " --optimizer " + job.optimizer.name;
  switch (job.recompute.kind) {
    case Recompute::Kind::none:
      break;
    case Recompute::Kind::full:
      text += " --recompute full";
      break;
    case Recompute::Kind::every:
      text += " --recompute every=" + std::to_string(job.recompute.count);
      break;
    case Recompute::Kind::uniform:
      text += " --recompute uniform=" + std::to_string(job.recompute.count);
      break;
    case Recompute::Kind::first:
      text += " --recompute first=" + std::to_string(job.recompute.count);
      break;
    case Recompute::Kind::selective:
      text += " --recompute selective=";
      for (const Module module : job.recompute.modules) text += std::string(name_of(module)) + ",";
      break;
  }
  switch (job.routing.kind) {
    case Routing::Kind::balanced:
      break;
    case Routing::Kind::expected:
      text += " --routing expected=" + std::to_string(job.routing.skew);
      break;
    case Routing::Kind::capacity:
      text += " --routing capacity=" + to_string(job.routing.capacity);
      break;
    case Routing::Kind::worst:
      text += " --routing worst";
      break;
  }
  return text;
}

}  // namespace placet::testing
