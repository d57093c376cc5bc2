// The job as people write it: words and numbers from flags, from a file, or from both
// (docs/formats.md), and the one way from there to the value that everything is derived from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "profile/job.h"
#include "units/error.h"

namespace placet {

/// What was asked for, word by word; empty where nothing was said. The member names are the flags.
struct JobRequest {
  std::optional<std::string> model;
  std::vector<std::string> ignore_keys;  // --ignore-key: keys of the model's configuration
  std::optional<std::string> cluster;
  std::optional<std::string> placement;
  std::optional<std::int64_t> sequence;  // --seq
  std::vector<SampleLength> lengths;     // 4096:3/4,65536:1/4
  std::optional<std::int64_t> global_batch;
  std::optional<std::int64_t> micro_batch;
  std::optional<std::string> recompute;
  std::optional<std::string> precision;
  std::optional<std::string> optimizer;
  std::vector<std::string> freeze;
  std::optional<std::string> lora;
  std::optional<std::string> loss;
  std::optional<double> clip;
  std::optional<std::string> routing;       // balanced, expected=SKEW, worst
  std::optional<std::string> balance_loss;  // none, sequence, micro-batch, global
  std::optional<std::string> engine;
  /// For messages: the job file that was read, and the words that are as it says; all others are as
  /// flags say.
  std::filesystem::path file;
  std::set<std::string> in_file;

  friend bool operator==(const JobRequest&, const JobRequest&) = default;
};

/// The words of a job file, TOML or JSON: the same as the flags without the dashes in front
/// ("global-batch"). Paths in it are relative to its folder. Throws InputError with the key.
JobRequest read_job_file(const std::filesystem::path& path);

/// Words that may name files, as they are said in that folder; a name of the catalogue and a whole
/// path stay as they are. Of an engine.
std::string file_from_folder(const std::filesystem::path& folder, const std::string& word);
/// Of a model, which may also be a name with its owner, "meta-llama/Llama-3.1-8B".
std::string model_from_folder(const std::filesystem::path& folder, const std::string& word);
/// Of a cluster: in "64xmy.json,8xh100-sxm" paths stand after counts.
std::string cluster_from_folder(const std::filesystem::path& folder, const std::string& text);

/// `flags` where they say something, `file` otherwise.
JobRequest merge(const JobRequest& flags, const JobRequest& file);

/// A fault of a word under the name that the word has where it was said: "--recompute" is
/// "job.toml: recompute" if the file says it. Other faults as they are.
InputFault named_as_said(InputFault fault, const JobRequest& request);

/// The model of a request with its formats, frozen tensors and adapters; no placement is needed.
/// `model` is required: throws InputError without it.
Model load_requested_model(const Catalog& catalog, const JobRequest& request);

/// Throws InputError for a word that neither flags nor the job's file say.
[[noreturn]] void fail_missing(const JobRequest& request, const char* word, std::string allowed);

/// The job. Defaults: engine placet, one sample per micro-batch, one micro-batch per step, the
/// model's longest sequence up to 4096 tokens, no recomputation, the engine's precision, AdamW,
/// no clipping, balanced routing, no balance loss. What was assumed is added to Model::notes.
/// Without a cluster, capacity is not judged. Throws InputError for a request without placement.
Job load_job(const Catalog& catalog, const JobRequest& request);

/// The same without placement: what a planner starts from. Without a global batch, one is assumed
/// from the model's size and the devices (catalog/defaults.h). Throws InputError for a request
/// without cluster.
Job load_unplaced_job(const Catalog& catalog, const JobRequest& request);

/// What a job trains and how, with the engine's facts for its devices: no placement, no batch.
Job load_trained_job(const Catalog& catalog, const JobRequest& request);

/// The recomputation that a text spells: none, full, selective, selective=core_attention,mlp,
/// every=N, first=N, uniform=N.
Recompute parse_recompute(const std::string& text, const std::string& where);

/// The lengths of samples that a text spells: "4096:3/4,65536:1/4". Throws InputError unless tokens
/// differ and shares add up to 1.
std::vector<SampleLength> parse_lengths(const std::string& text, const std::string& where);

/// The routing that a text spells: balanced, worst, expected=1.3.
Routing parse_routing(const std::string& text, const std::string& where);

/// The scope of a balance loss that a text spells: none, sequence, micro-batch, global.
BalanceScope parse_balance_loss(const std::string& text, const std::string& where);

}  // namespace placet
