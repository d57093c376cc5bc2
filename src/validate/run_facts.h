// What a row of a table of runs says about a job, in its own words: every input of a prediction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "profile/training.h"
#include "validate/row_reader.h"

namespace placet {

/// Sizes of the transformer.
struct RunShape {
  std::string catalogue_model;  // a name or a path; if given, the rest is not looked at
  std::string adapters;         // "16" or "16,q_proj,v_proj": LoRA's rank and matrices; else empty
  std::int64_t layers = 1;
  std::int64_t hidden = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_size = 1;
  std::int64_t ffn = 0;
  std::string mlp_type;
  std::int64_t vocabulary = 1;
  bool tied = false;
  std::string positions;
  std::int64_t experts = 0;  // routed; 0: dense
  std::int64_t experts_per_token = 0;
  std::int64_t expert_width = 0;
  std::int64_t shared_experts = 0;
  std::int64_t dense_blocks = 0;  // leading blocks without experts
  std::int64_t sequence = 1;
  double dropout = 0;

  friend auto operator<=>(const RunShape&, const RunShape&) = default;
};

struct RunDegrees {
  std::int64_t data = 1;
  std::int64_t tensor = 1;
  std::int64_t layer = 1;
  std::int64_t chunks = 1;  // virtual stages per device
  std::int64_t context = 1;
  std::int64_t expert = 1;
  /// Experts lie over the innermost ranks of a stage, whole or cut by the tensor ranks: with whole
  /// ones the tensor ranks are the first that divide them (arXiv:2504.14960, parallel folding).
  bool whole_experts = false;

  /// Degree of what divides experts beyond the tensor ranks: over the sequence, then data ranks.
  std::int64_t expert_beyond_tensor() const { return whole_experts ? expert / tensor : expert; }
  /// The same beyond the sequence ranks.
  std::int64_t expert_over_data() const {
    return expert == 1 ? 1 : expert_beyond_tensor() / context;
  }

  friend bool operator==(const RunDegrees&, const RunDegrees&) = default;
};

struct RunFacts {
  RunShape shape;
  RunDegrees degrees;
  Batch batch;
  bool splits_stream = false;  // sequence parallelism over the tensor group
  std::int64_t sharding_stage = 0;
  std::string sharding_term;     // instead of the stage
  std::int64_t shard_group = 0;  // data ranks that divide states among them; 0: all
  std::string schedule;          // as the source spells it
  std::string stage_blocks;      // "15,16,15", or empty
  std::optional<std::int64_t> first_stage_blocks;
  bool host_runs_ahead = false;  // launches pile up: a fact of the cluster, not of the placement
  std::optional<std::int64_t> host_us_per_block;
  std::optional<std::int64_t> utilisation_percent;
  std::string recompute;  // these four as the source spells them
  std::string precision;
  std::string optimizer;
  std::string device;
  std::string cluster;                      // of the catalogue; empty: the device's usual hosts
  std::string network;                      // as networks are spelled; empty: the cluster's
  std::string link_inside;                  // the same inside a host
  std::int64_t devices_per_host = 0;        // 0: as the cluster's hosts have
  std::int64_t slice_devices = 0;           // that the innermost links join; 0: all they can
  std::optional<double> network_bandwidth;  // GB/s, measured across hosts by all devices of a host
  std::optional<double> bandwidth_of_all;   // the same, by groups over all of the job's hosts
  std::optional<double> intra_bandwidth;    // GB/s, inside a host
  std::optional<double> network_latency;    // microseconds of a step of a collective
  std::optional<double> host_latency;       // of the host, per further member of a group
  std::optional<double> host_latency_inside;  // the same of members on the own host
  double host_pace = 1;  // times as long as elsewhere the cluster's hosts take for all they do
  std::vector<std::string> notes;  // on cells that were not understood and stand for nothing

  friend bool operator==(const RunFacts&, const RunFacts&) = default;
};

/// What reads names that a row's cells spell: models and links.
struct RunWords {
  const Catalog* catalog = nullptr;
  const WordTable* words = nullptr;
};

/// Reads a row. What is missing stands in reader.missing() afterwards; the facts mean nothing then.
RunFacts read_run(RowReader& reader, const RunWords& words);

}  // namespace placet
