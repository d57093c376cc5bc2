#include "validate/run_jobs.h"

#include <algorithm>

#include "catalog/cluster_catalog.h"
#include "catalog/job.h"
#include "catalog/meant.h"
#include "catalog/profile_catalog.h"
#include "catalog/reader.h"
#include "catalog/training_catalog.h"
#include "catalog/word_file.h"
#include "derive/stages.h"
#include "model/build.h"
#include "model/listing.h"
#include "placement/grammar.h"
#include "profile/autocast.h"
#include "profile/products.h"
#include "units/error.h"
#include "units/nearest.h"
#include "validate/run_model.h"
#include "validate/run_time.h"

namespace placet {
namespace {

// Words that say: what the engine does unless told otherwise.
constexpr std::string_view kEngineDefault = "engine";

std::string sharding_term(const RunFacts& facts, const RunLayout& layout) {
  if (!facts.sharding_term.empty()) return facts.sharding_term;
  return layout.sharding_terms[static_cast<std::size_t>(facts.sharding_stage)];
}

std::string axis_with(const std::string& axis, std::int64_t degree, const std::string& how) {
  return degree > 1 ? axis + "=" + std::to_string(degree) + how : std::string();
}

std::string data_text(const RunFacts& facts, const RunLayout& layout) {
  const RunDegrees& degrees = facts.degrees;
  const std::string how = ":" + sharding_term(facts, layout);
  const bool groups_shards = facts.shard_group > 0 && facts.shard_group < degrees.data;
  if (groups_shards && degrees.expert == 1) {
    const std::string groups = std::to_string(degrees.data / facts.shard_group);
    return "rep=" + groups + ":" + layout.sharding_terms.front() + " " +
           axis_with("dp", facts.shard_group, how);
  }
  // Experts lie along the innermost part of the data-parallel ranks.
  return axis_with("dp", degrees.data / degrees.expert_over_data(), how);
}

std::string axis_text(const std::string& axis, const RunFacts& facts, const RunLayout& layout,
                      const std::string& schedule_word) {
  const RunDegrees& degrees = facts.degrees;
  const auto spell = [&axis](std::int64_t degree, const std::string& how) {
    return axis_with(axis, degree, how);
  };
  if (axis == "pp") {
    const std::string shares = facts.stage_blocks.empty() ? "" : "[" + facts.stage_blocks + "]";
    return spell(degrees.layer, shares + ":" + schedule_word);
  }
  if (axis == "dp") return data_text(facts, layout);
  const std::string experts = degrees.expert > 1 ? "+ep" : "";
  if (axis == "cp") {
    return spell(degrees.context,
                 ":" + layout.context_term + experts + "+" + sharding_term(facts, layout));
  }
  if (axis == "ep") return spell(degrees.expert_over_data(), ":ep+" + sharding_term(facts, layout));
  return spell(degrees.tensor, std::string(facts.splits_stream ? ":tp+sp" : ":tp") +
                                   (degrees.whole_experts ? "+ep" : ""));
}

// "interleaved" asks for the number of chunks: "interleaved(2)".
std::string schedule_text(std::string word, const RunFacts& facts) {
  const std::size_t at = word.find("{vpp}");
  if (at == std::string::npos) return word;
  return word.replace(at, 5, std::to_string(facts.degrees.chunks));
}

Recompute recompute_named(const std::string& word, const std::string& where) {
  const std::string policy = "policy ";
  if (!word.starts_with(policy)) return parse_recompute(word, where);
  return {.kind = Recompute::Kind::selective, .policy = word.substr(policy.size())};
}

}  // namespace

std::string placement_text(const RunFacts& facts, const RunLayout& layout,
                           const std::string& schedule_word) {
  std::string text;
  for (const std::string& axis : layout.order) {
    const std::string part = axis_text(axis, facts, layout, schedule_word);
    if (!part.empty()) text += (text.empty() ? "" : " ") + part;
  }
  return text.empty() ? "dp=1:" + layout.sharding_terms.front() : text;
}

RunPlanner::RunPlanner(const Catalog& catalog, const ValidationCatalog& validation,
                       std::optional<std::string> engine)
    : catalog_(&catalog),
      validation_(&validation),
      engine_(std::move(engine)),
      strategies_(load_strategies(catalog)) {
  if (engine_) profile_of(*engine_, "--engine");
}

std::string RunPlanner::word_of(const std::string& column, const std::string& theirs,
                                const std::string& where) {
  const auto table = validation_->words.find(column);
  if (table != validation_->words.end()) {
    const auto word = table->second.find(theirs);
    if (word != table->second.end()) return word->second;
  }
  if (auto ours = word_of_people(column, theirs)) return *ours;
  throw InputError({.where = where + ", column " + column,
                    .value = theirs,
                    .problem = "is not a known word",
                    .allowed = "a word of data/validation/words.json, or as flags spell it",
                    .nearest = nearest(theirs, names_for(column))});
}

// As flags take it: "NVIDIA H100 80GB HBM3", "fp8-blockwise", "selective=core_attention", "zb-v".
std::optional<std::string> RunPlanner::word_of_people(const std::string& column,
                                                      const std::string& theirs) const {
  const auto known = [&](const char* folder, const std::string& name) {
    return has_file(*catalog_, folder, name) ? std::optional(name) : std::nullopt;
  };
  if (column == "gpu") {
    return known("hardware/devices", meant_cluster(*catalog_, theirs).text);
  }
  if (column == "precision") {
    return known("precisions", meant_precision(*catalog_, theirs).text);
  }
  if (column == "optimizer") {
    return known("optimizers", meant_optimizer(*catalog_, theirs).text);
  }
  if (column == "pp_schedule") {
    const std::string word = lower_case(theirs);
    const bool found = known("schedules", word.substr(0, word.find('('))).has_value();
    return found ? std::optional(word) : std::nullopt;
  }
  if (column != "act_ckpt") return std::nullopt;
  const std::string word = meant_recompute(*catalog_, theirs).text;
  try {
    parse_recompute(word, column);
    return word;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::vector<std::string> RunPlanner::names_for(const std::string& column) const {
  std::vector<std::string> names;
  if (column == "gpu") names = names_in(*catalog_, "hardware/devices");
  if (column == "precision") names = names_in(*catalog_, "precisions");
  if (column == "optimizer") names = names_in(*catalog_, "optimizers");
  if (column == "pp_schedule") names = names_in(*catalog_, "schedules");
  if (column == "act_ckpt") names = {"none", "full", "selective"};
  return names;
}

const Model& RunPlanner::model_of(const RunShape& shape, const std::string& where) {
  const auto found = models_.find(shape);
  if (found != models_.end()) return found->second;
  if (!shape.catalogue_model.empty()) {
    return models_.emplace(shape, load_requested_model(*catalog_, {.model = shape.catalogue_model}))
        .first->second;
  }
  return models_.emplace(shape, build_model(architecture_of(decoder_of(shape), where)))
      .first->second;
}

// A name without a version leaves each row the version that its own rule chose of that engine.
std::string RunPlanner::engine_of(const EngineRule& rule) const {
  if (!engine_ || rule.profile.starts_with(*engine_ + "@")) return rule.profile;
  return *engine_;
}

const Profile& RunPlanner::profile_of(const std::string& name, const std::string& where) {
  const auto found = profiles_.find(name);
  if (found != profiles_.end()) return found->second;
  return profiles_.emplace(name, load_profile(*catalog_, name, where)).first->second;
}

const Device& RunPlanner::device_of(const std::string& device, const std::string& where) {
  const std::string name = word_of("gpu", device, where);
  const auto found = devices_.find(name);
  if (found != devices_.end()) return found->second.device;
  return devices_.emplace(name, load_device(*catalog_, name, where)).first->second.device;
}

const std::vector<Fact>& RunPlanner::device_facts(const std::string& device) const {
  static const std::vector<Fact> kNone;
  const auto found = devices_.find(device);
  return found == devices_.end() ? kNone : found->second.facts;
}

// A coarse time: model FLOPs of a micro-batch over the blocks, the devices that divide them, and
// what the device reaches.
bool RunPlanner::host_runs_ahead(const RunFacts& facts, const RunPlan& plan,
                                 const std::string& where) {
  if (!facts.host_us_per_block || !facts.utilisation_percent || facts.device.empty()) {
    return facts.host_runs_ahead;
  }
  const Model& model = plan.frame->job.model;
  const double tokens = static_cast<double>(facts.batch.micro * facts.batch.sequence);
  const double sharers =
      static_cast<double>(model.figures.blocks * facts.degrees.tensor * facts.degrees.context);
  const double flops =
      in_flops(flops_per_token(model, facts.batch.sequence).training) * tokens / sharers;
  const double reached = in_flops_per_second(device_of(facts.device, where).peak_bf16) *
                         static_cast<double>(*facts.utilisation_percent) / 100;
  return flops / reached > static_cast<double>(*facts.host_us_per_block) * 1e-6;
}

// Devices of one kind, with nothing said of what joins them.
Cluster RunPlanner::cluster_of_one(const Device& device) {
  Cluster cluster;
  cluster.groups.push_back({.device = device, .count = 1});
  return cluster;
}

// Adapters on a frozen base, as flags ask for them.
Job RunPlanner::adapted_job(const RunFacts& facts, const FrameWords& words) const {
  JobRequest request{.model = facts.shape.catalogue_model,
                     .recompute = words.recompute,
                     .optimizer = words.optimizer,
                     .lora = facts.shape.adapters,
                     .clip = 1,
                     .engine = words.engine};
  if (words.precision != kEngineDefault) request.precision = words.precision;
  if (!words.device.empty()) request.cluster = "1x" + words.device;
  return load_trained_job(*catalog_, request);
}

std::shared_ptr<const RunFrame> RunPlanner::frame_of(const RunFacts& facts,
                                                     const EngineRule& engine,
                                                     const std::string& where) {
  const Model& model = model_of(facts.shape, where);
  const std::string engine_name = engine_of(engine);
  const std::string recompute = word_of("act_ckpt", facts.recompute, where);
  const std::string precision = word_of("precision", facts.precision, where);
  const std::string optimizer = word_of("optimizer", facts.optimizer, where);
  const std::string device = facts.device.empty() ? "" : word_of("gpu", facts.device, where);
  auto& slot = frames_[{facts.shape, engine_name + "|" + recompute + "|" + precision + "|" +
                                         optimizer + "|" + device}];
  if (slot) return slot;
  auto frame = std::make_shared<RunFrame>();
  frame->words = {engine_name, recompute, precision, optimizer, device};
  Job& job = frame->job;
  if (!facts.shape.adapters.empty()) {
    job = adapted_job(facts, frame->words);
    job.cluster.reset();
    frame->prepared = prepare(job);
    return slot = std::move(frame);
  }
  job.model = model;
  job.profile = profile_of(engine_name, where);
  job.engine_text = job.profile.name + "@" + job.profile.version;
  job.recompute = recompute_named(recompute, where + ", column act_ckpt");
  job.precision = job.profile.precision;
  if (precision != kEngineDefault) {
    const PrecisionChoice choice =
        read_precision(*catalog_, precision, job.precision, where + ", column precision");
    job.precision = choice.precision;
    job.scales_loss_dynamically = choice.scales_loss_dynamically;
  }
  job.optimizer = load_optimizer(*catalog_, optimizer, where + ", column optimizer");
  if (job.profile.moments_like_parameters) follow_parameters(job.precision, job.optimizer);
  job.clips_by_global_norm = true;
  if (!device.empty()) job.cluster = cluster_of_one(device_of(facts.device, where));
  job.profile = load_profile(*catalog_, engine_name, job, where);
  set_formats(job);
  job.cluster.reset();  // each row has its own
  frame->prepared = prepare(job);
  slot = std::move(frame);
  return slot;
}

RunPlan RunPlanner::plan(const RunFacts& facts, const EngineRule& engine,
                         const std::string& where) {
  const std::string schedule =
      facts.degrees.layer > 1 ? schedule_text(word_of("pp_schedule", facts.schedule, where), facts)
                              : std::string();
  RunPlan plan{.frame = frame_of(facts, engine, where),
               .batch = facts.batch,
               .first_stage_blocks = facts.first_stage_blocks,
               .placement_text = placement_text(facts, engine.layout, schedule)};
  plan.placement = parse_placement(plan.placement_text, strategies_.vocabulary);
  plan.schedule = schedule_of(strategies_, plan.placement);
  plan.attention = attention_of(strategies_, plan.placement);
  plan.host_runs_ahead = host_runs_ahead(facts, plan, where);
  plan.host_pace = facts.host_pace;
  if (!facts.device.empty()) {
    plan.capacity = device_of(facts.device, where).memory;
    plan.cluster = cluster_of(*catalog_, facts, word_of("gpu", facts.device, where), where);
    plan.cluster->groups.front().host_runs_ahead = plan.host_runs_ahead;
  }
  return plan;
}

namespace {

AxisPlacement* layer_axis(Placement& placement) {
  for (AxisPlacement& axis : placement.axes) {
    if (axis.how.cut == Cut::layer) return &axis;
  }
  return nullptr;
}

void give_first_stage(Job& job, std::int64_t first) {
  AxisPlacement* axis = layer_axis(job.placement);
  if (axis == nullptr || !axis->shares.empty()) return;
  std::vector<std::int64_t> blocks =
      blocks_per_stage(job, virtual_stages(job.schedule, axis->degree));
  const std::int64_t moved = blocks[0] - first;
  if (moved == 0 || blocks[1] + moved < 0) return;
  blocks[0] = first;
  blocks[1] += moved;
  axis->shares = std::move(blocks);
}

}  // namespace

Job job_of(const RunPlan& plan) {
  Job job = plan.frame->job;
  job.placement = plan.placement;
  job.placement_text = plan.placement_text;
  job.schedule = plan.schedule;
  job.attention = plan.attention;
  job.batch = plan.batch;
  job.host_runs_ahead = plan.host_runs_ahead;
  job.weight_copies = weight_copies(job.precision, job.profile, plan.cluster);
  slow_hosts(job.profile.timing, plan.host_pace);
  if (plan.first_stage_blocks) give_first_stage(job, *plan.first_stage_blocks);
  return job;
}

}  // namespace placet
