#include "cli/job_flags.h"

#include <algorithm>
#include <utility>

#include "catalog/reader.h"
#include "cli/data_flag.h"
#include "cli/import_flags.h"
#include "report/derivation_text.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
void add_model_flags(CLI::App& command, JobFlags& flags) {
  command.add_option("MODEL", flags.model,
                     "A config.json, a folder holding one, a name that `placet models` lists, or a "
                     "count such as 70B");
  const auto take = [&flags](const std::string& name) {
    if (!flags.model.empty()) {
      throw InputError({.where = "--model",
                        .value = name,
                        .problem = "is said beside the argument '" + flags.model + "'",
                        .allowed = "one of them"});
    }
    flags.model = name;
  };
  command.add_option_function<std::string>("--model", take, "MODEL, where --from SOURCES stand")
      ->type_name("MODEL");
  command.add_option("--job", flags.job_file, "Job file (TOML or JSON); flags win over it")
      ->type_name("FILE");
  command
      .add_option("--from", flags.from,
                  "Configurations of an engine and launch scripts that say the job; '-': "
                  "standard input")
      ->each([&flags](const std::string& name) { take_source(name, flags.texts); })
      ->type_name("SOURCES");
  command.add_option("--dialect", flags.dialect, "How the sources are to be read (guessed)")
      ->type_name("NAME");
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
      .add_option(
          "--recompute", flags.recompute,
          "none, full, selective[=core_attn,mlp,...], every=N, first=N or uniform=N (groups of "
          "N blocks, each made again from its input)")
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
  command
      .add_option("--set", flags.set,
                  "A number of the engine (reduce_bucket_size=5e7), or a word that --from leaves "
                  "open")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  command.add_option("--world-size", flags.world, "Devices, where --from leaves them open")
      ->type_name("N");
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

std::function<int()> on_request(const JobFlags& flags,
                                std::function<int(const JobRequest&)> command, AskedOf asked) {
  return [&flags, command = std::move(command), asked] {
    return on_said(called_catalog(), flags, asked, command);
  };
}

}  // namespace placet
