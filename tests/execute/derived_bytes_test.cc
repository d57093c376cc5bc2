// Jobs that are run as they are, none made small: what `placet run` counts at the communicators and
// in the buffers is what `placet derive` says, to the byte, but for the figures in which closed
// forms and step programs are known to differ (tests/meet/apart.h); and under every engine what the
// program's own sums say.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "amount.h"
#include "call/runs.h"
#include "catalog/catalog.h"
#include "catalog/profile_catalog.h"
#include "derive/rules.h"
#include "execute/step_bytes.h"
#include "lower/catalogue_jobs.h"
#include "lower/lower.h"
#include "meet/apart.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::testing {
namespace {

constexpr const char* kTinyGpt2 =
    R"({"model_type": "gpt2", "n_layer": 8, "n_embd": 32, "n_head": 4, "n_positions": 32,
        "vocab_size": 96, "attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1})";
constexpr const char* kTinyLlama =
    R"({"model_type": "llama", "num_hidden_layers": 8, "hidden_size": 32, "intermediate_size": 96,
        "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 8,
        "max_position_embeddings": 32, "vocab_size": 96, "rms_norm_eps": 1e-5,
        "hidden_act": "silu", "tie_word_embeddings": false})";
constexpr const char* kTinyMixtral =
    R"({"model_type": "mixtral", "num_hidden_layers": 8, "hidden_size": 32, "intermediate_size": 32,
        "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 8, "num_local_experts": 4,
        "num_experts_per_tok": 2, "max_position_embeddings": 32, "vocab_size": 96,
        "rms_norm_eps": 1e-5, "hidden_act": "silu", "sliding_window": null,
        "tie_word_embeddings": false})";

/// The tiny model that stands for one of the catalogue, and what it is called.
std::pair<const char*, std::string> tiny_of(const std::string& model) {
  const std::set<std::string> plain = {"gpt2", "falcon-7b", "gpt-neox-20b", "bloom-176b"};
  const std::set<std::string> routed = {"mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3",
                                        "glm-4.5-air"};
  if (plain.contains(model)) return {kTinyGpt2, "tiny gpt2"};
  if (routed.contains(model)) return {kTinyMixtral, "tiny mixtral"};
  return {kTinyLlama, "tiny llama"};
}

/// A job of the catalogue's list with a tiny model.
struct TinyJob {
  std::string name;
  JobFlags flags;
};

std::int64_t replicas_of_tiny(const Job& job) {
  std::int64_t replicas = 1;
  for (const AxisPlacement& axis : job.placement.axes) {
    const bool other_samples = axis.how.cut == Cut::batch || axis.how.cut == Cut::expert;
    if (other_samples) replicas *= axis.degree;
  }
  return replicas;
}

std::vector<TinyJob> tiny_jobs() {
  std::vector<TinyJob> out;
  std::set<std::string> known;
  for (const CatalogueJob& job : all_catalogue_jobs()) {
    const auto& [model, name] = tiny_of(job.model);
    TinyJob tiny{.name = name + " " + job.placement, .flags = {.model = model}};
    tiny.flags.placements = {job.placement};
    tiny.flags.sequence = "24";
    tiny.flags.micro_batch = "1";
    tiny.flags.recompute = job.recompute;
    tiny.flags.lora = job.lora;
    tiny.flags.balance_loss = job.balance;
    tiny.flags.precision = job.precision;
    for (const std::string& more : {job.recompute, job.lora, job.balance, job.precision}) {
      if (!more.empty()) tiny.name += " " + more;
    }
    if (known.insert(tiny.name).second) out.push_back(std::move(tiny));
  }
  return out;
}

bool has_host_part(const Job& job) {
  return std::ranges::any_of(job.placement.axes, [](const AxisPlacement& axis) {
    return std::ranges::any_of(axis.how.offload, [](const auto& part) { return part.has_value(); });
  });
}

bool cuts_vocabulary_alone(const Job& job) {
  return std::ranges::any_of(job.placement.axes, [](const AxisPlacement& axis) {
    const IndexSet indices = axis.how.tensor_indices;
    return axis.how.cut == Cut::tensor && axis.degree > 1 && contains(indices, Index::vocab) &&
           !contains(indices, Index::expert) && !contains(indices, Index::ffn);
  });
}

/// What of a figure is no claim here, beside `apart`, which is of jobs without these options. The
/// list only shrinks.
const char* apart_in_run(const Job& job, Figure figure) {
  if (figure != Figure::rest && job.balance != BalanceScope::none) {
    return "messages and peaks: the closed form has no terms of the balance loss";
  }
  if (figure != Figure::messages && has_host_part(job)) {
    return "rest and peaks: a part of a state on the host is one of whole tensors in the program";
  }
  const bool routed = job.model.figures.experts > 0;
  if (figure == Figure::messages && routed && cuts_vocabulary_alone(job)) {
    return "messages: the closed form adds up results of experts that a tensor axis does not cut";
  }
  return apart(job, figure);
}

/// Jobs by their outcome.
struct DerivedTold {
  int run = 0;
  std::map<std::string, int> refused;  // why
  std::map<std::string, int> apart;    // figures that are not compared, and why
};

void compare_lines(const std::vector<Beside>& lines, const std::string& name) {
  for (const Beside& line : lines) {
    ASSERT_TRUE(line.derived) << name << ": " << line.what;
    EXPECT_EQ(line.measured, *line.derived) << name << ", " << line.what;
  }
}

void compare_figures(const Job& job, const RunSheet& sheet, const std::string& name,
                     DerivedTold& out) {
  const std::map<Figure, std::vector<Beside>> figures = {{Figure::messages, sheet.sent},
                                                         {Figure::rest, {sheet.held.at(0)}},
                                                         {Figure::peak, {sheet.held.at(1)}}};
  for (const auto& [figure, lines] : figures) {
    if (const char* why = apart_in_run(job, figure)) {
      ++out.apart[why];
    } else {
      compare_lines(lines, name);
    }
  }
}

/// The job, or why the engine has none.
std::optional<Job> loaded_job(const Catalog& catalog, JobFlags& flags, DerivedTold& out) {
  flags.global_batch = "1";
  Job job = load_job(catalog, request_of(catalog, flags));
  const bool pipelined = std::ranges::any_of(
      job.placement.axes, [](const AxisPlacement& axis) { return axis.how.cut == Cut::layer; });
  flags.global_batch = std::to_string(replicas_of_tiny(job) * (pipelined ? 8 : 2));
  job = load_job(catalog, request_of(catalog, flags));
  const bool refused = std::ranges::any_of(
      check_rules(job), [](const Finding& f) { return f.severity == Severity::error; });
  const char* why = refused ? "the rules" : unseen(job);
  if (why == nullptr) return job;
  ++out.refused[why];
  return std::nullopt;
}

void compare_columns(TinyJob tiny, DerivedTold& out) {
  const Catalog catalog = find_catalog();
  try {
    const std::optional<Job> job = loaded_job(catalog, tiny.flags, out);
    if (!job) return;
    RunRequest request{.steps = 1, .mode = "declared"};
    request.program.job = tiny.flags;
    const RanProgram ran = ran_of(catalog, request, request_of(catalog, tiny.flags));
    const std::string& name = tiny.name;
    if (!ran.sheet.as_it_is) {
      ++out.refused["too large to run as it is"];
      return;
    }
    ASSERT_FALSE(ran.sheet.run.stuck) << name << ": " << *ran.sheet.run.stuck;
    ++out.run;
    compare_figures(*job, ran.sheet, name, out);
  } catch (const InputError& error) {
    ++out.refused[error.what()];
  }
}

std::vector<TinyJob> shuffled_jobs(const std::string& seed) {
  std::vector<TinyJob> jobs = tiny_jobs();
  std::seed_seq numbers(seed.begin(), seed.end());
  std::shuffle(jobs.begin(), jobs.end(), std::mt19937(numbers));
  return jobs;
}

void print(const DerivedTold& told) {
  std::cout << told.run << " run\n";
  for (const auto& [why, times] : told.apart) std::cout << times << " apart in " << why << "\n";
  for (const auto& [why, times] : told.refused) std::cout << times << " refused: " << why << "\n";
}

constexpr int kParts = 8;
constexpr int kFewOfPart = 4;  // in daily work

class DerivedBytes : public ::testing::TestWithParam<int> {};

// The columns of `placet run`, under the plain theory.
TEST_P(DerivedBytes, AreCountedInARun) {
  const std::vector<TinyJob> jobs = shuffled_jobs("columns");
  DerivedTold told;
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    if (k % kParts != at(GetParam())) continue;
    if (!runs_all() && told.run == kFewOfPart) break;
    compare_columns(jobs[k], told);
  }
  EXPECT_GT(told.run, 0);
  print(told);
}

INSTANTIATE_TEST_SUITE_P(OfTinyJobs, DerivedBytes, ::testing::Range(0, kParts));

void compare_whole_step(TinyJob tiny, const std::string& engine, DerivedTold& out) {
  tiny.flags.engine = engine;
  const std::string name = engine + ": " + tiny.name;
  try {
    const std::optional<Job> job = loaded_job(find_catalog(), tiny.flags, out);
    if (!job) return;
    for (const std::string& text : differences_in_step(lower(*job))) {
      ADD_FAILURE() << name << ", " << text;
    }
    ++out.run;
  } catch (const InputError& error) {
    ++out.refused[error.what()];
  }
}

/// Jobs of an engine that are run in daily work.
constexpr int kFewWhole = 5;

class WholeStepUnderEngine : public ::testing::TestWithParam<std::string> {};

// Closed forms of engines count what programs have not (their own buckets and paths), so that here
// the program's sums alone are asked.
TEST_P(WholeStepUnderEngine, IsThatOfTheProgram) {
  DerivedTold told;
  for (const TinyJob& tiny : shuffled_jobs(GetParam())) {
    if (!runs_all() && told.run == kFewWhole) break;
    compare_whole_step(tiny, GetParam(), told);
  }
  EXPECT_GT(told.run, 0);
  print(told);
}

INSTANTIATE_TEST_SUITE_P(OfTheData, WholeStepUnderEngine,
                         ::testing::ValuesIn(profile_names(find_catalog())), name_of_engine);

}  // namespace
}  // namespace placet::testing
