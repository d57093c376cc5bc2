#include "cli/job_flags.h"

#include <algorithm>
#include <utility>

#include "catalog/meant.h"
#include "catalog/reader.h"
#include "report/derivation_text.h"
#include "units/error.h"
#include "units/nearest.h"
#include "units/number.h"

namespace placet {
namespace {

constexpr std::int64_t kMostTokens = 1'000'000'000;
constexpr std::int64_t kMostSamples = 1'000'000'000'000;

std::optional<std::string> said(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

std::optional<std::int64_t> whole(const std::string& text, const char* flag, std::int64_t most) {
  if (text.empty()) return std::nullopt;
  const auto n = number_in<std::int64_t>(text);
  if (n && *n >= 1 && *n <= most) return n;
  throw InputError({.where = flag,
                    .value = text,
                    .problem = "is not a whole number in range",
                    .allowed = "1 to " + std::to_string(most)});
}

/// Tokens may be written as "4k"; samples may not: of those a k is a thousand to some and 1024 to
/// others.
std::optional<std::int64_t> tokens(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto n = tokens_in(text);
  if (n && *n >= 1 && *n <= kMostTokens) return n;
  throw InputError(
      {.where = "--seq",
       .value = text,
       .problem = "is not a number of tokens",
       .allowed = "1 to " + std::to_string(kMostTokens) + ", also as 4k (4096) or 1M (1048576)"});
}

std::optional<std::int64_t> samples(const std::string& text, const char* flag) {
  const auto kilo = text.empty() ? std::nullopt : tokens_in(text);
  if (!kilo || number_in<std::int64_t>(text)) return whole(text, flag, kMostSamples);
  throw InputError({.where = flag,
                    .value = text,
                    .problem = "counts samples, not tokens, and takes no k or M",
                    .allowed = "a whole number of samples, such as 1024; tokens per step are "
                               "samples times --seq"});
}

std::optional<double> number(const std::string& text, const char* flag) {
  if (text.empty()) return std::nullopt;
  const auto n = number_in<double>(text);
  if (n && *n >= 0 && *n <= 1e12) return n;
  throw InputError(
      {.where = flag, .value = text, .problem = "is not a norm", .allowed = "0 to 1e12"});
}

}  // namespace

void add_model_flags(CLI::App& command, JobFlags& flags) {
  command.add_option("MODEL", flags.model,
                     "A config.json, a folder holding one, a name that `placet models` lists, or a "
                     "count such as 70B");
  command.add_option("--job", flags.job_file, "Job file (TOML or JSON); flags win over it")
      ->type_name("FILE");
  command.add_option("--seq", flags.sequence, "Tokens per sample: 4096 or 4k")->type_name("N");
  command.add_option("--freeze", flags.freeze, "Parameters that are not trained")
      ->allow_extra_args(false)
      ->type_name("GLOB");
  command
      .add_option("--ignore-key", flags.ignore_keys,
                  "Read the model's configuration without this key (repeatable)")
      ->allow_extra_args(false)
      ->type_name("KEY");
  command.add_option("--lora", flags.lora, "Low-rank adapters: RANK or RANK,GLOB,...")
      ->type_name("RANK[,GLOB]");
}

void add_job_flags(CLI::App& command, JobFlags& flags) {
  add_model_flags(command, flags);
  command
      .add_option("--placement", flags.placements,
                  "Axes, outermost first: \"dp=8:zero1 tp=8:tp+sp\"")
      ->allow_extra_args(false)
      ->type_name("PLACEMENT");
  command
      .add_option("--cluster", flags.cluster,
                  "Devices: h100-sxm:8 (nodes), 64xh100-sxm (devices), a cluster or a file")
      ->type_name("CLUSTER");
  command
      .add_option("--lengths", flags.lengths,
                  "Samples of several lengths, with their shares: 4096:3/4,65536:1/4")
      ->type_name("TOKENS:SHARE,...");
  command.add_option("--global-batch", flags.global_batch, "Samples per step")->type_name("N");
  command.add_option("--micro-batch", flags.micro_batch, "Samples per micro-batch (1)")
      ->type_name("N");
  command
      .add_option("--recompute", flags.recompute,
                  "none, full, selective[=core_attn,mlp,...], every=N or first=N")
      ->type_name("WHAT");
  command
      .add_option("--precision", flags.precision,
                  "Formats: a name (mixed), or CLASS=DTYPE,... (gradients=fp32)")
      ->type_name("NAME");
  command.add_option("--optimizer", flags.optimizer, "Optimizer (adamw)")->type_name("NAME");
  command.add_option("--loss", flags.loss, "Weight of the loss: token-mean")->type_name("NAME");
  command
      .add_option("--clip", flags.clip, "Clip gradients at this global norm; 0: not (the engine's)")
      ->type_name("NORM");
  command
      .add_option("--routing", flags.routing,
                  "Spread of tokens over experts: balanced, expected=SKEW, capacity=FACTOR or "
                  "worst")
      ->type_name("HOW");
  command
      .add_option("--balance-loss", flags.balance_loss,
                  "Balance loss of routers, over what: none, sequence, micro-batch or global")
      ->type_name("SCOPE");
  command.add_option("--engine", flags.engine, "Engine profile: NAME or NAME@VERSION (placet)")
      ->type_name("ENGINE");
}

void add_result_flags(CLI::App& command, ResultFlags& flags) {
  command.add_flag("--json", flags.json, "Print one JSON document")->disable_flag_override();
  command.add_option("--html", flags.html, "Write a self-contained page")->type_name("FILE");
}

void add_explain_flag(CLI::App& command, ResultFlags& flags) {
  flags.explain_option =
      command
          .add_option("--explain", flags.explain,
                      "Show the terms behind a number: memory, communication or a state")
          ->expected(0, 1)
          ->type_name("[WHAT]");
}

std::string what_to_explain(const ResultFlags& flags) {
  if (flags.explain_option->count() == 0) return {};
  if (flags.explain.empty()) return "memory";
  const std::vector<std::string> words = explainable();
  if (std::ranges::find(words, flags.explain) != words.end()) return flags.explain;
  throw InputError({.where = "--explain",
                    .value = flags.explain,
                    .problem = "has no terms",
                    .allowed = list_words(words),
                    .nearest = nearest(flags.explain, words)});
}

JobRequest request_of(const JobFlags& flags) {
  JobRequest request;
  request.model = said(flags.model);
  request.cluster = said(flags.cluster);
  if (!flags.placements.empty()) request.placement = flags.placements.front();
  request.sequence = tokens(flags.sequence);
  if (!flags.lengths.empty()) request.lengths = parse_lengths(flags.lengths, "--lengths");
  request.global_batch = samples(flags.global_batch, "--global-batch");
  request.micro_batch = samples(flags.micro_batch, "--micro-batch");
  request.recompute = said(flags.recompute);
  request.precision = said(flags.precision);
  request.optimizer = said(flags.optimizer);
  request.freeze = flags.freeze;
  request.ignore_keys = flags.ignore_keys;
  request.lora = said(flags.lora);
  request.loss = said(flags.loss);
  request.clip = number(flags.clip, "--clip");
  request.routing = said(flags.routing);
  request.balance_loss = said(flags.balance_loss);
  request.engine = said(flags.engine);
  return flags.job_file.empty() ? request : merge(request, read_job_file(flags.job_file));
}

void require_one_placement(const JobFlags& flags) {
  if (flags.placements.size() <= 1) return;
  throw InputError({.where = "--placement",
                    .value = flags.placements[1],
                    .problem = "is a second placement",
                    .allowed = "one; `placet compare` takes several"});
}

std::function<int()> on_request(const JobFlags& flags,
                                std::function<int(const JobRequest&)> command) {
  return [&flags, command = std::move(command)] {
    const JobRequest request = request_of(flags);
    try {
      return command(request);
    } catch (const InputError& error) {
      throw InputError(named_as_said(error.fault(), request));
    }
  };
}

void require_shapes(const Job& job, std::string_view what) {
  if (!is_bare(job.model)) return;
  throw InputError({.where = "MODEL",
                    .value = job.model.name,
                    .problem = "is a bare count of parameters",
                    .allowed = "a model with shapes, as " + std::string(what) +
                               " depends on them: a name that `placet models` lists, a "
                               "config.json, or decoder=" +
                               std::to_string(count_parameters(job.model).total) +
                               " for an ordinary decoder of that size"});
}

}  // namespace placet
