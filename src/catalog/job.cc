#include "catalog/job.h"

#include <algorithm>
#include <charconv>

#include "catalog/cluster_catalog.h"
#include "catalog/defaults.h"
#include "catalog/meant.h"
#include "catalog/model_catalog.h"
#include "catalog/profile_catalog.h"
#include "catalog/reader.h"
#include "catalog/strategy_catalog.h"
#include "catalog/training_catalog.h"
#include "model/adapt.h"
#include "model/gradients.h"
#include "placement/grammar.h"
#include "profile/autocast.h"
#include "profile/lengths.h"
#include "profile/products.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet {

void fail_missing(const JobRequest& request, const char* word, std::string allowed) {
  const std::string file = request.file.empty() ? "" : " (or in " + request.file.string() + ")";
  throw InputError({.where = std::string("--") + word + file,
                    .problem = "is missing",
                    .allowed = std::move(allowed)});
}

namespace {

constexpr const char* kAdapters =
    "RANK or RANK,GLOB,... such as 16 or 16,q_proj,v_proj; 16,all-linear; 16,dropout=0.05";

// One of what stands behind the rank: "all-linear", "dropout=0.05" or a pattern.
void read_adapter_word(const std::string& word, Adapters& adapters, const InputFault& fault) {
  constexpr std::string_view kDropout = "dropout=";
  if (word.empty()) {
    throw InputError({.where = fault.where,
                      .value = fault.value,
                      .problem = "has nothing after a comma",
                      .allowed = kAdapters});
  }
  if (word == "all-linear") {
    adapters.all_linear = true;
  } else if (word.starts_with(kDropout)) {
    double share = -1;
    const char* last = word.data() + word.size();
    const auto [at, error] = std::from_chars(word.data() + kDropout.size(), last, share);
    if (error != std::errc() || at != last || !(share >= 0 && share < 1)) {
      throw InputError({.where = fault.where,
                        .value = word,
                        .problem = "is no share of entries",
                        .allowed = "dropout=0 to below 1, such as dropout=0.05"});
    }
    adapters.drops = share > 0;
  } else {
    adapters.patterns.push_back(word);
  }
}

// "8" or "8,GLOB,GLOB", "8,all-linear,dropout=0.1".
Adapters adapters_of(const std::string& said, const std::string& where) {
  Adapters adapters;
  const std::string text = said.starts_with("r=") ? said.substr(2) : said;  // as PEFT spells it
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, adapters.rank);
  if (error != std::errc() || adapters.rank < 1 || (at != end && *at != ',')) {
    throw InputError(
        {.where = where, .value = text, .problem = "has no valid rank", .allowed = kAdapters});
  }
  auto begin = static_cast<std::size_t>(at - text.data());
  while (begin < text.size()) {
    const std::size_t comma = std::min(text.find(',', begin + 1), text.size());
    read_adapter_word(text.substr(begin + 1, comma - begin - 1), adapters,
                      {.where = where, .value = text});
    begin = comma;
  }
  if (adapters.all_linear && !adapters.patterns.empty()) {
    throw InputError({.where = where,
                      .value = text,
                      .problem = "names all linear operators and some",
                      .allowed = "all-linear, or patterns"});
  }
  return adapters;
}

// The loss whose weighting the reference states; others change no byte and are refused until the
// checks know them.
void check_loss(const JobRequest& request) {
  if (!request.loss || *request.loss == "token-mean") return;
  throw InputError({.where = "--loss",
                    .value = *request.loss,
                    .problem = "is not a known loss weight",
                    .allowed = "token-mean"});
}

/// The profile's own selective policies come before modules: "selective=op".
Recompute recompute_of(const std::string& text, const Profile& profile, const std::string& where) {
  const std::string prefix = "selective=";
  for (const RecomputePolicy& policy : profile.policies) {
    if (text == prefix + policy.name) {
      return {.kind = Recompute::Kind::selective, .policy = policy.name};
    }
  }
  return parse_recompute(text, where);
}

/// Counts of blocks that the model does not have.
void check_recomputed_blocks(const Job& job, const std::string& text) {
  const std::int64_t blocks = job.model.figures.blocks;
  if (is_bare(job.model) || blocks == 0 || job.recompute.count <= blocks) return;
  const std::string all = std::to_string(blocks);
  switch (job.recompute.kind) {
    case Recompute::Kind::first:
      refuse("--recompute", text, "recomputes more blocks than the model has",
             "first=1 to first=" + all + ", or full");
    case Recompute::Kind::uniform:
      throw InputError({.where = "--recompute",
                        .problem = "recomputes blocks in groups larger than the model ('" + text +
                                   "', the model has " + all + " blocks)",
                        .allowed = "uniform=1 to uniform=" + all});
    case Recompute::Kind::every:
    case Recompute::Kind::none:
    case Recompute::Kind::full:
    case Recompute::Kind::selective:
      refuse("--recompute", text, "recomputes one block of more than the model has",
             "every=1 to every=" + all + ", or none");
  }
}

/// Whether parameters are gathered for use along an axis: those of all blocks or of a class apart.
bool gathers_parameters(const AxisPlacement& axis) {
  const auto gathers = [](const Modes& modes) {
    return modes.parameters != Mode::replicated && modes.parameters != Mode::sharded;
  };
  return axis.degree > 1 &&
         (gathers(axis.how.modes) || std::ranges::any_of(axis.overrides, [&](const Override& own) {
            return gathers(own.how.modes);
          }));
}

/// Blocks recomputed several at a time: their parameters are used twice in backward, and are there.
void check_together(const Job& job) {
  if (job.recompute.kind != Recompute::Kind::uniform) return;
  const auto gathering = std::ranges::find_if(job.placement.axes, gathers_parameters);
  if (gathering != job.placement.axes.end()) {
    throw InputError({.where = "--recompute",
                      .problem = "uniform=N is not supported with parameters gathered for use "
                                 "(ZeRO-3/FSDP) along " +
                                 std::string(gathering->axis.text()),
                      .allowed = "full, every=N or first=N"});
  }
  if (splits_backward(job.schedule.order)) {
    throw InputError({.where = "--recompute",
                      .problem = "uniform=N cannot be combined with schedules that split backward "
                                 "(zero-bubble, DualPipe)",
                      .allowed = "full, or a schedule such as 1f1b"});
  }
}

std::int64_t batch_ways(const Placement& placement) {
  std::int64_t ways = 1;
  for (const AxisPlacement& axis : placement.axes) {
    const bool cuts = axis.how.cut == Cut::batch || axis.how.cut == Cut::expert;
    if (cuts) ways = checked_multiply(ways, axis.degree, "samples");
  }
  return ways;
}

[[noreturn]] void refuse_recompute_beside(const AxisPlacement& axis, const JobRequest& request) {
  const std::string kept(symbol_of(default_modes(axis.how.cut).activations));
  const std::string name(axis.axis.text());
  throw InputError({.where = "--recompute",
                    .value = *request.recompute,
                    .problem = "contradicts the placement: activations are M along " + name +
                               ", which recomputes every block",
                    .allowed = "full, nothing, or activations " + kept + " along " + name,
                    .nearest = "full"});
}

/// Activations that rest nowhere (A = M) are all made again: the same as "full", so that any other
/// word contradicts the placement, "none" too.
void check_recompute(const JobRequest& request, const Job& job) {
  check_together(job);
  if (!request.recompute || job.recompute.kind == Recompute::Kind::full) return;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.modes.activations != Mode::materialized) continue;
    refuse_recompute_beside(axis, request);
  }
}

/// Devices over which a sample of the longest length is divided.
std::int64_t devices_along_sequence(const Placement& placement) {
  std::int64_t devices = 1;
  for (const AxisPlacement& axis : placement.axes) {
    if (axis.how.cut != Cut::sequence || axis.degree == 1) continue;
    if (devices > 1 || !axis.shares.empty()) {
      throw InputError(
          {.where = "--lengths",
           .problem = "asks for one axis of equal shares that cuts the sequence, and axis " +
                      std::string(axis.axis.text()) + " is " +
                      (devices > 1 ? "a second one" : "of other shares"),
           .allowed = "at most one such axis"});
    }
    devices = axis.degree;
  }
  return devices;
}

/// The samples of several lengths, as those of the longest.
void set_lengths(const JobRequest& request, Job& job, Batch& batch) {
  batch.lengths = request.lengths;
  batch.sequence = std::ranges::max_element(batch.lengths, {}, &SampleLength::tokens)->tokens;
  if (request.sequence && *request.sequence != batch.sequence) {
    throw InputError({.where = "--seq",
                      .value = std::to_string(*request.sequence),
                      .problem = "is not the longest of --lengths",
                      .allowed = std::to_string(batch.sequence) + ", or nothing"});
  }
  if (!request.global_batch) {
    fail_missing(request, "global-batch", "samples per step, of all lengths together");
  }
  batch.samples = *request.global_batch;
  const std::int64_t per_round =
      checked_multiply(batch.micro, batch_ways(job.placement), "samples");
  batch.global = samples_of_longest(batch.lengths, batch.samples,
                                    devices_along_sequence(job.placement), per_round);
  job.model.notes.push_back(
      std::to_string(batch.samples) + " samples of " + std::to_string(batch.lengths.size()) +
      " lengths keep the devices busy as " + std::to_string(batch.global) + " of " +
      std::to_string(batch.sequence) +
      " tokens would: figures are those of a device that always works on the longest");
}

/// `devices` of an unplaced job, whose batch is assumed by its size; 0: the job is placed.
Batch batch_of(const Catalog& catalog, const JobRequest& request, Job& job, std::int64_t devices) {
  Batch batch;
  batch.micro = request.micro_batch.value_or(1);
  if (!request.lengths.empty()) {
    set_lengths(request, job, batch);
    return batch;
  }
  if (request.sequence) {
    batch.sequence = *request.sequence;
  } else {
    const std::int64_t longest = job.model.figures.max_sequence;
    const std::int64_t assumed = load_defaults(catalog).sequence.value;
    batch.sequence = longest > 0 ? std::min(longest, assumed) : assumed;
    job.model.notes.push_back("--seq was not given: " + std::to_string(batch.sequence) +
                              " tokens per sample are assumed");
  }
  if (request.global_batch) {
    batch.global = *request.global_batch;
  } else if (devices > 0) {
    const AssumedBatch assumed =
        assumed_batch(load_defaults(catalog), job.model, devices, batch.sequence);
    batch.global =
        checked_multiply((assumed.samples + batch.micro - 1) / batch.micro, batch.micro, "samples");
    job.model.notes.push_back("--global-batch was not given: " + std::to_string(batch.global) +
                              " samples per step are assumed (" + assumed.why + ")");
  } else {
    batch.global = checked_multiply(batch.micro, batch_ways(job.placement), "samples");
    job.model.notes.push_back("--global-batch was not given: one micro-batch per device, " +
                              std::to_string(batch.global) +
                              (batch.global == 1 ? " sample" : " samples") +
                              " per step, is assumed");
  }
  return batch;
}

/// Without a word on it the engine's default holds.
void set_clipping(const JobRequest& request, Job& job) {
  const bool by_default = job.profile.clips_by_default;
  job.clips_by_global_norm = request.clip ? *request.clip > 0 : by_default;
  if (request.clip || !by_default) return;
  job.model.notes.push_back("gradients are clipped by their global norm, the default of " +
                            job.engine_text + ": --clip 0 switches it off");
}

void set_training(const Catalog& catalog, const JobRequest& request, Job& job) {
  job.optimizer = load_optimizer(catalog, request.optimizer.value_or("adamw"), "--optimizer");
  if (job.profile.moments_like_parameters) follow_parameters(job.precision, job.optimizer);
  if (request.recompute) {
    job.recompute = recompute_of(*request.recompute, job.profile, "--recompute");
    check_recomputed_blocks(job, *request.recompute);
  }
  if (request.routing) job.routing = parse_routing(*request.routing, "--routing");
  if (request.balance_loss) {
    job.balance = parse_balance_loss(*request.balance_loss, "--balance-loss");
  }
  set_clipping(request, job);
  check_loss(request);
}

}  // namespace

namespace {

/// The model of a request whose words are canonical.
Model load_meant_model(const Catalog& catalog, const JobRequest& request) {
  if (!request.model) {
    throw InputError({.where = "MODEL",
                      .problem = "is missing",
                      .allowed = "a config.json, a folder that holds one, a name that `placet "
                                 "models` lists, or a count such as 70B"});
  }
  Model model = load_model(catalog, *request.model, request.ignore_keys);
  if (request.lora) {
    model = with_lora(std::move(model), adapters_of(*request.lora, "--lora"));
  }
  if (!request.freeze.empty()) model = with_frozen(std::move(model), request.freeze);
  return model;
}

/// Formats of classes that the model has no tensors of.
void note_formats_without_effect(const PrecisionChoice& choice, Model& model) {
  for (const auto& [tensor_class, format] : choice.parameters_at_rest) {
    const auto is_of_class = [one = tensor_class](const Parameter& parameter) {
      return contains(parameter.classes, one);
    };
    const bool found = std::ranges::any_of(model.kinds, [&](const UnitKind& kind) {
      return std::ranges::any_of(kind.parameters, is_of_class);
    });
    if (found) continue;
    model.notes.push_back("--precision " + std::string(name_of(tensor_class)) + "=" +
                          std::string(name_of(format.dtype)) +
                          " has nothing to act on: the model has no tensors of this class");
  }
}

/// Whether the text begins with the name of a precision, and not with the format of a class.
bool names_precision(const std::string& text) {
  return text.substr(0, text.find(',')).find('=') == std::string::npos;
}

/// Adapters are trained beside a base as it was loaded, in half precision, unless a precision is
/// named or says how frozen tensors rest.
void keep_base_as_loaded(const JobRequest& request, const Precision& precision,
                         PrecisionChoice& choice, Model& model) {
  const bool is_said =
      choice.frozen_at_rest || (request.precision && names_precision(*request.precision));
  if (!request.lora || is_said || bits_of(precision.parameters) <= 16) return;
  const Dtype loaded = bits_of(precision.compute) == 16 ? precision.compute : Dtype::bf16;
  choice.frozen_at_rest = StorageFormat{.dtype = loaded, .constants = {}};
  model.notes.push_back("the frozen base rests in " + std::string(name_of(loaded)) +
                        ", as it is loaded for adapters, and these in " +
                        std::string(name_of(precision.parameters)) +
                        ": --precision frozen=FORMAT says otherwise");
}

/// Where what an engine does by default hangs on something that a job does not say. Of a frozen
/// base another rule speaks.
void note_assumed_formats(const JobRequest& request, Job& job) {
  if (request.precision || request.lora || job.profile.precision_unless.empty()) return;
  job.model.notes.push_back("weights rest in " + std::string(name_of(job.precision.parameters)) +
                            ", the default of " + job.engine_text + ", " +
                            job.profile.precision_unless);
}

/// All that does not depend on the placement, but for batch and cluster.
Job load_trained(const Catalog& catalog, const JobRequest& request) {
  Job job;
  job.model = with_gradients_needed(load_meant_model(catalog, request));
  job.profile = load_profile(catalog, request.engine.value_or("placet"), "--engine");
  job.engine_text = job.profile.name + "@" + job.profile.version;
  job.precision = job.profile.precision;
  PrecisionChoice choice{.precision = job.precision};
  if (request.precision) {
    choice = read_precision(catalog, *request.precision, job.precision, "--precision");
    job.scales_loss_dynamically = choice.scales_loss_dynamically;
  }
  job.precision = choice.precision;
  note_assumed_formats(request, job);
  keep_base_as_loaded(request, job.precision, choice, job.model);
  apply_formats(choice, job.model);
  note_formats_without_effect(choice, job.model);
  set_training(catalog, request, job);
  return job;
}

/// What follows from model, formats and devices together: the engine's facts for such jobs, and
/// what the products' format asks of the devices. Throws InputError where one has no units for it.
void settle(const Catalog& catalog, const JobRequest& request, Job& job) {
  job.profile = load_profile(catalog, request.engine.value_or("placet"), job, "--engine");
  if (job.cluster) {
    const DeviceGroup& group = job.cluster->groups.front();
    job.host_runs_ahead = group.host_runs_ahead;
    slow_hosts(job.profile.timing, group.host_pace);
  }
  set_formats(job);
  job.weight_copies = weight_copies(job.precision, job.profile, job.cluster);
  if (!job.precision.products || !job.cluster) return;
  const ProductFormat& format = *job.precision.products;
  if (bits_of(format.numbers.dtype) >= bits_of(job.precision.compute)) return;
  const MatmulFormat units = matmul_format_of(format.units);
  for (const DeviceGroup& group : job.cluster->groups) {
    const DeviceRates& rates = group.device.rates;
    if (rates.matmul[static_cast<std::size_t>(units)] > FlopsPerSecond()) continue;
    const auto has = [&](MatmulFormat f) {
      return rates.matmul[static_cast<std::size_t>(f)] > FlopsPerSecond();
    };
    throw InputError(
        {.where = "--precision",
         .value = job.precision.name,
         .problem =
             "multiplies in " + format.name + ", and " + group.device.name + " has no units for it",
         .allowed = has(MatmulFormat::fp8) ? "fp8, fp8-current or fp8-blockwise on this device"
                                           : "formats of 16 bits or more on this device"});
  }
}

/// Folders that lie over the catalogue may hide what a name means elsewhere: they are told.
void note_overlays(const Catalog& catalog, std::vector<std::string>& notes) {
  std::string folders;
  for (const std::filesystem::path& folder : catalog.overlays) {
    folders += (folders.empty() ? "" : ", ") + folder.string();
  }
  if (folders.empty()) return;
  notes.push_back("data of " + folders + " lies over the catalogue (placet data list)");
}

/// Notes on words come before all others.
void add_first(const std::vector<std::string>& notes, Model& model) {
  model.notes.insert(model.notes.begin(), notes.begin(), notes.end());
}

}  // namespace

Model load_requested_model(const Catalog& catalog, const JobRequest& request) {
  std::vector<std::string> notes;
  Model model = load_meant_model(catalog, meant_words(catalog, request, notes));
  add_first(notes, model);
  return model;
}

Job load_job(const Catalog& catalog, const JobRequest& said) {
  std::vector<std::string> notes;
  note_overlays(catalog, notes);
  const JobRequest request = meant_words(catalog, said, notes);
  if (!request.model) load_meant_model(catalog, request);  // says what is missing
  if (!request.placement) {
    fail_missing(request, "placement", "axes such as \"dp=8:zero1 tp=8:tp+sp\"");
  }
  const std::shared_ptr<const StrategyCatalog> kept = shared_strategies(catalog);
  const StrategyCatalog& strategies = *kept;
  Job job = load_trained(catalog, request);
  const Meant placement = meant_placement(catalog, strategies.vocabulary, *request.placement);
  notes.insert(notes.end(), placement.notes.begin(), placement.notes.end());
  add_first(notes, job.model);
  job.placement = parse_placement(placement.text, strategies.vocabulary);
  job.placement_text = print_placement(job.placement, strategies.vocabulary);
  job.schedule = schedule_of(strategies, job.placement);
  check_recompute(request, job);
  job.attention = attention_of(strategies, job.placement);
  job.methods = methods_of(strategies, job.placement);
  for (const Method& method : job.methods) {
    job.model.notes.push_back(method.name +
                              " is another training; memory, communication and time are those of "
                              "the placement and of the engine's facts: its rewrites change none");
  }
  job.batch = batch_of(catalog, request, job, 0);
  if (request.cluster) {
    job.cluster = load_cluster(catalog, *request.cluster, devices_of(job.placement), "--cluster");
  }
  settle(catalog, request, job);
  return job;
}

Job load_trained_job(const Catalog& catalog, const JobRequest& said) {
  std::vector<std::string> notes;
  const JobRequest request = meant_words(catalog, said, notes);
  Job job = load_trained(catalog, request);
  add_first(notes, job.model);
  if (request.cluster) {
    job.cluster = load_cluster(catalog, *request.cluster, std::nullopt, "--cluster");
  }
  settle(catalog, request, job);
  return job;
}

Job load_unplaced_job(const Catalog& catalog, const JobRequest& said) {
  std::vector<std::string> notes;
  note_overlays(catalog, notes);
  const JobRequest request = meant_words(catalog, said, notes);
  Job job = load_trained(catalog, request);
  add_first(notes, job.model);
  if (!request.cluster) {
    fail_missing(request, "cluster", "devices to lay the model over, such as h100-sxm:8");
  }
  if (!request.lengths.empty()) {
    throw InputError({.where = "--lengths",
                      .problem = "is nothing to plan for",
                      .allowed = "--seq: plans are compared for samples of one length"});
  }
  job.cluster = load_cluster(catalog, *request.cluster, std::nullopt, "--cluster");
  settle(catalog, request, job);
  job.batch = batch_of(catalog, request, job, devices_of(*job.cluster));
  return job;
}

}  // namespace placet
