#include "call/experiments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "call/programs.h"
#include "call/runs.h"
#include "catalog/job.h"
#include "execute/replay.h"
#include "report/human.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

// Small decoders that train in seconds. The second one shares no tensor between its ends, so that
// every parameter is gathered as often as every other.
constexpr const char* kTiedModel =
    R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 4, "n_positions": 32,
        "vocab_size": 64, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0})";
constexpr const char* kUntiedModel =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
        "vocab_size": 64, "rms_norm_eps": 1e-5, "hidden_act": "silu",
        "tie_word_embeddings": false})";

struct Setting {
  const char* model;
  std::string placement;
  std::string mode;
  int steps = 1;
  std::string samples;
};

/// Where an experiment has its jobs from, and whom it tells what it does.
struct Laboratory {
  const Catalog& catalog;
  const ExperimentSetting& setting;
};

ExperimentRun run_one(const Laboratory& laboratory, const Setting& setting) {
  laboratory.setting.tell("training under " + setting.placement + ", " + setting.mode);
  RunRequest request{.steps = setting.steps, .mode = setting.mode};
  request.program.job.model = setting.model;
  request.program.job.sequence = "16";
  request.program.job.global_batch = setting.samples;
  request.program.job.micro_batch = "1";
  request.program.job.placements = {setting.placement};
  return on_said(laboratory.catalog, request.program.job, AskedOf::all, [&](const JobRequest& job) {
    return ExperimentRun{setting.placement, ran_of(laboratory.catalog, request, job).sheet};
  });
}

/// Bytes of tensors that a rank sends: without the single numbers that are added up over all.
std::int64_t sent_by(const RunSheet& sheet, const std::string& collective) {
  std::int64_t bytes = 0;
  for (const SentBytes& one : sheet.run.sent) {
    if (one.collective == collective) bytes += one.bytes;
  }
  return bytes;
}

std::string ratio_text(std::int64_t a, std::int64_t b) {
  const std::int64_t common = std::max<std::int64_t>(std::gcd(a, b), 1);
  return std::to_string(a / common) + (b == common ? "" : "/" + std::to_string(b / common));
}

ExperimentFact fact(std::string what, const std::string& expected, const std::string& found) {
  return {
      .what = std::move(what), .expected = expected, .found = found, .holds = expected == found};
}

void add_equal_figures(const std::string& placement, const std::vector<Beside>& lines,
                       Experiment& experiment) {
  for (const Beside& line : lines) {
    if (!line.derived) continue;
    experiment.facts.push_back(fact(placement + ", " + line.what + ", derived and measured bytes",
                                    std::to_string(*line.derived), std::to_string(line.measured)));
  }
}

void add_equal_figures(Experiment& experiment) {
  for (const auto& [placement, sheet] : experiment.runs) {
    add_equal_figures(placement, sheet.sent, experiment);
    add_equal_figures(placement, sheet.held, experiment);
  }
}

/// A model of a billion parameters, trained in mixed precision: 16 bytes for each.
constexpr const char* kLargeModel = "pythia-1b";
constexpr std::array kLargePlacements = {"dp=8:ddp", "dp=8:zero3"};

ReplayedBuffers replayed(const Catalog& catalog, const std::string& placement) {
  JobFlags flags;
  flags.model = kLargeModel;
  flags.sequence = "2048";
  flags.global_batch = "8";
  flags.micro_batch = "1";
  flags.placements = {placement};
  return on_said(catalog, flags, AskedOf::all, [&](const JobRequest& request) {
    const DerivedBytes derived = derived_bytes(load_job(catalog, request));
    const execute::Replayed found =
        execute::replay_buffers(lowered_of(catalog, request).program, 0);
    return ReplayedBuffers{.model = kLargeModel,
                           .placement = placement,
                           .derived_rest = derived.rest,
                           .derived_peak = derived.peak,
                           .rest = found.held.rest,
                           .peak = found.held.peak,
                           .resident_rest = found.resident_rest,
                           .resident_peak = found.resident_peak};
  });
}

/// Pages are whole, and the process needs some of its own.
bool is_near(std::int64_t resident, std::int64_t bytes) {
  constexpr double kNear = 0.01;
  const auto more = static_cast<double>(resident - bytes);
  return std::fabs(more) <= kNear * static_cast<double>(bytes);
}

void add_replayed(const Laboratory& laboratory, Experiment& experiment) {
  if (!laboratory.setting.in_full_size) {
    experiment.note = fmt::format("{} in its full size is for the program alone", kLargeModel);
    return;
  }
  constexpr std::int64_t kNeeded = 20'000'000'000;  // 18.6 GB at the peak, and a margin
  const std::int64_t available = execute::available_memory();
  if (available < kNeeded) {
    experiment.note = fmt::format(
        "{} in its full size was not tried: it needs {} GB of memory, and {} GB are free here",
        kLargeModel, kNeeded / 1'000'000'000, available < 0 ? 0 : available / 1'000'000'000);
    return;
  }
  for (const char* placement : kLargePlacements) {
    laboratory.setting.tell(
        fmt::format("making and freeing the buffers of {} under {}", kLargeModel, placement));
    experiment.replayed.push_back(replayed(laboratory.catalog, placement));
    const ReplayedBuffers& one = experiment.replayed.back();
    const std::string name = one.model + " " + one.placement;
    experiment.facts.push_back(fact(name + ", at rest, derived and in buffers",
                                    std::to_string(one.derived_rest), std::to_string(one.rest)));
    experiment.facts.push_back(fact(name + ", peak, derived and in buffers",
                                    std::to_string(one.derived_peak), std::to_string(one.peak)));
    experiment.facts.push_back({.what = name + ", pages at the peak (within 1 %)",
                                .expected = human_bytes(bytes(one.peak)),
                                .found = human_bytes(bytes(one.resident_peak)),
                                .holds = is_near(one.resident_peak, one.peak)});
  }
  const std::vector<ReplayedBuffers>& both = experiment.replayed;
  experiment.facts.push_back(
      fact(std::string(kLargeModel) + ", states at rest, replicated : divided", "8",
           ratio_text(both[0].rest, both[1].rest)));
}

Experiment memory(const Laboratory& laboratory) {
  Experiment out{.name = "memory",
                 .question = "What does a device hold when all states are divided over eight?",
                 .runs = {},
                 .facts = {}};
  for (const char* placement : {"dp=8:ddp", "dp=8:zero3"}) {
    out.runs.push_back(run_one(laboratory, {kUntiedModel, placement, "canonical", 2, "8"}));
  }
  const HeldBytes& whole = out.runs[0].sheet.run.held;
  const HeldBytes& part = out.runs[1].sheet.run.held;
  out.facts.push_back(
      fact("states at rest, replicated : divided", "8", ratio_text(whole.rest, part.rest)));
  add_equal_figures(out);
  add_replayed(laboratory, out);
  return out;
}

Experiment communication(const Laboratory& laboratory) {
  Experiment out{.name = "communication",
                 .question = "What does it cost in messages that all states are divided?",
                 .runs = {},
                 .facts = {}};
  for (const char* placement : {"dp=4:ddp", "dp=4:zero3"}) {
    out.runs.push_back(run_one(laboratory, {kUntiedModel, placement, "canonical", 2, "4"}));
  }
  const RunSheet& replicated = out.runs[0].sheet;
  const RunSheet& divided = out.runs[1].sheet;
  const std::int64_t numbers = sent_by(divided, "all_reduce");  // counts of tokens, losses
  const std::int64_t whole = sent_by(replicated, "all_reduce") - numbers;
  const std::int64_t part = sent_by(divided, "all_gather") + sent_by(divided, "reduce_scatter");
  out.facts.push_back(fact("bytes of parameters and gradients, divided : replicated", "3/2",
                           ratio_text(part, whole)));
  add_equal_figures(out);
  return out;
}

Experiment integrity(const Laboratory& laboratory) {
  Experiment out{.name = "integrity",
                 .question = "Are ten steps on four devices the ten steps of one?",
                 .runs = {},
                 .facts = {}};
  for (const char* mode : {"canonical", "f32"}) {
    out.runs.push_back(run_one(laboratory, {kTiedModel, "dp=4:zero3", mode, 10, "8"}));
  }
  const RealRun& exact = out.runs[0].sheet.run;
  const RealRun& plain = out.runs[1].sheet.run;
  out.facts.push_back(fact("exact sums: numbers with other bits than on one device", "0",
                           std::to_string(exact.stuck ? -1 : exact.differing)));
  out.facts.push_back(
      {.what = "plain f32: numbers with other bits than on one device",
       .expected = "some",
       .found = std::to_string(plain.differing) + " of " + std::to_string(plain.compared),
       .holds = plain.differing > 0});
  return out;
}

struct Named {
  std::string_view name;
  Experiment (*run)(const Laboratory&);
};
constexpr std::array<Named, 3> kExperiments = {{
    {"memory", &memory},
    {"communication", &communication},
    {"integrity", &integrity},
}};

}  // namespace

std::vector<std::string> experiment_names() {
  std::vector<std::string> names;
  names.reserve(kExperiments.size());
  for (const Named& one : kExperiments) names.emplace_back(one.name);
  return names;
}

Experiment experiment_of(const Catalog& catalog, const std::string& name,
                         const ExperimentSetting& setting) {
  for (const Named& one : kExperiments) {
    if (one.name == name) return one.run({catalog, setting});
  }
  throw InputError({.where = "--experiment",
                    .value = name,
                    .problem = "is no experiment",
                    .allowed = "memory, communication or integrity",
                    .nearest = nearest(name, experiment_names())});
}

}  // namespace placet
