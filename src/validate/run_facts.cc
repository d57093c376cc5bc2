#include "validate/run_facts.h"

#include <algorithm>
#include <array>

#include "catalog/config_object.h"
#include "catalog/meant.h"
#include "catalog/network_words.h"
#include "catalog/table.h"
#include "catalog/word_file.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::int64_t kMostDegree = 1 << 20;
constexpr std::int64_t kMostSamples = 1'000'000'000;
constexpr std::int64_t kMostTokens = 1'000'000'000;
constexpr std::int64_t kMostMicroseconds = 1'000'000'000;
constexpr std::int64_t kMostPerHost = 1024;

void read_experts(RowReader& reader, RunShape& shape) {
  const bool says_experts = shape.mlp_type.find("moe") != std::string::npos;
  const auto experts = reader.find_whole("moe_experts", {0, kMostExperts});
  if (!says_experts && experts.value_or(0) == 0) return;
  shape.experts = reader.need_whole("moe_experts", {1, kMostExperts});
  shape.experts_per_token = reader.need_whole("moe_topk", {1, kMostExperts});
  shape.expert_width = reader.need_whole("moe_ffn", {1, kMostWidth});
  shape.shared_experts = reader.need_whole("moe_shared_experts", {0, kMostExperts});
  // Some models alternate instead of beginning with dense blocks.
  const auto dense = reader.find("moe_first_dense_layers");
  if (dense && dense->find_first_not_of("0123456789") != std::string::npos) {
    return reader.miss("which blocks have experts cannot be said in columns");
  }
  shape.dense_blocks = reader.need_whole("moe_first_dense_layers", {0, kMostLayers});
}

// What a row trains. Full fine-tuning computes what pre-training does.
std::string read_adapters(RowReader& reader) {
  const std::string task = lower_case(reader.find("task").value_or("pretrain"));
  static constexpr std::array<std::string_view, 6> kWhole = {
      "pretrain", "pretraining", "sft", "full", "finetune", "continued-pretrain"};
  if (std::ranges::find(kWhole, task) != kWhole.end()) return {};
  if (task != "lora") {
    reader.miss("task '" + task + "' is not one of pretrain, sft, full and lora");
    return {};
  }
  const auto rank = reader.find_whole("lora_rank", {1, kMostWidth});
  if (!rank) {
    reader.miss("task lora asks for lora_rank, which is not stated");
    return {};
  }
  const std::string targets = reader.find("lora_targets").value_or("");
  return std::to_string(*rank) + (targets.empty() ? "" : "," + targets);
}

// The name of a model of the catalogue that a word stands for; empty: none.
std::string known_model(const std::string& said, const RunWords& words) {
  try {
    const std::string name = meant_model(*words.catalog, said).text;
    return has_file(*words.catalog, "models", name) ? name : "";
  } catch (const InputError&) {
    return {};
  }
}

// A name of the catalogue or a path from the table's folder: of the column for it, or, where the
// row gives no sizes, of the model's name.
std::string read_model_name(RowReader& reader, const RunWords& words) {
  const auto named = reader.find("catalogue_model");
  const bool is_named = named && !named->empty();
  if (!is_named && (reader.find("n_layers") || reader.find("hidden"))) return {};
  const std::string said = is_named ? *named : std::string(reader.stated("model"));
  if (said.empty()) return {};
  if (std::string known = known_model(said, words); !known.empty()) return known;
  if (said.ends_with(".json") || (is_named && names_a_file(said))) {
    return reference_in(reader.where(), said);
  }
  return is_named ? said : "";
}

RunShape read_shape(RowReader& reader, const RunWords& words) {
  RunShape shape;
  shape.sequence = reader.need_whole("seq_len", {1, kMostTokens});
  shape.adapters = read_adapters(reader);
  shape.catalogue_model = read_model_name(reader, words);
  if (!shape.adapters.empty() && shape.catalogue_model.empty()) {
    reader.miss("task lora asks for catalogue_model, a name or the path of a config.json");
  }
  if (!shape.catalogue_model.empty()) return shape;
  shape.layers = reader.need_whole("n_layers", {1, kMostLayers});
  shape.hidden = reader.need_whole("hidden", {1, kMostWidth});
  shape.heads = reader.need_whole("n_heads", {1, kMostHeads});
  shape.kv_heads = reader.need_whole("n_kv_heads", {1, kMostHeads});
  shape.vocabulary = reader.need_whole("vocab", {1, kMostRows});
  shape.mlp_type = reader.need("mlp_type");
  shape.positions = reader.need("pos_embedding");
  shape.tied = reader.need_whole("tied_embeddings", {0, 1}) == 1;
  shape.dropout =
      static_cast<double>(reader.find_whole("dropout_percent", {0, 99}).value_or(0)) / 100;
  read_experts(reader, shape);
  const bool all_experts = shape.experts > 0 && shape.dense_blocks == 0;
  if (!all_experts) shape.ffn = reader.need_whole("ffn", {1, kMostWidth});
  // A source that does not name the head size has heads that share the hidden size.
  const auto head_size = reader.find_whole("head_dim", {1, kMostWidth});
  if (!head_size && reader.missing().empty() && shape.hidden % shape.heads != 0) {
    reader.miss("head_dim is not stated");
  }
  shape.head_size = head_size.value_or(shape.hidden / shape.heads);
  if (shape.heads % shape.kv_heads != 0) {
    reader.miss("n_heads is not a multiple of n_kv_heads");
  }
  return shape;
}

// Where the experts lie: beside the tensor ranks (etp is tp), or over them too (etp is 1; unless
// stated where they would not find room otherwise).
void read_expert_ranks(RowReader& reader, RunDegrees& degrees) {
  const std::int64_t outer = degrees.data * degrees.context;
  const auto cut = reader.find_whole("etp", {1, kMostDegree});
  degrees.whole_experts = degrees.tensor > 1 && (cut ? *cut == 1 : outer % degrees.expert != 0);
  if (cut && *cut != 1 && *cut != degrees.tensor) reader.miss("etp is neither 1 nor tp");
  if (degrees.whole_experts && degrees.expert % degrees.tensor != 0) {
    return reader.miss("ep is no multiple of tp, over whose ranks experts lie");
  }
  if (outer % degrees.expert_beyond_tensor() != 0) reader.miss("ep does not divide dp x cp");
  if (degrees.expert_beyond_tensor() % degrees.context != 0) {
    reader.miss("ep is no multiple of cp, over whose ranks experts lie");
  }
}

// n_gpus = dp x tp x pp x cp; one of dp and cp may follow from the others.
RunDegrees read_degrees(RowReader& reader, const RunShape& shape) {
  RunDegrees degrees;
  const WholeRange range{1, kMostDegree};
  degrees.tensor = reader.need_whole("tp", range);
  degrees.layer = reader.need_whole("pp", range);
  degrees.chunks = reader.find_whole("vpp", range).value_or(1);
  const auto devices = reader.find_whole("n_gpus", range);
  const auto data = reader.find_whole("dp", range);
  const auto context = reader.find_whole("cp", range);
  const std::int64_t inner = degrees.tensor * degrees.layer;
  if (data && context) {
    degrees.data = *data;
    degrees.context = *context;
  } else if (devices && context && *devices % (inner * *context) == 0) {
    degrees.context = *context;
    degrees.data = *devices / (inner * *context);
  } else if (devices && data && *devices % (inner * *data) == 0) {
    degrees.data = *data;
    degrees.context = *devices / (inner * *data);
  } else {
    reader.miss(data ? "cp is not stated" : "dp is not stated");
  }
  if (devices && *devices != inner * degrees.data * degrees.context) {
    reader.miss("dp x tp x pp x cp is not n_gpus");
  }
  // A model of the catalogue says itself whether it has experts.
  if (!shape.catalogue_model.empty()) degrees.expert = reader.find_whole("ep", range).value_or(1);
  if (shape.experts > 0) degrees.expert = reader.need_whole("ep", range);
  if (degrees.expert > 1) read_expert_ranks(reader, degrees);
  return degrees;
}

// global = micro x micro-batches x dp; one of the three may follow from the others.
Batch read_batch(RowReader& reader, const RunShape& shape, const RunDegrees& degrees) {
  const WholeRange range{1, kMostSamples};
  Batch batch{.sequence = shape.sequence};
  auto micro = reader.find_whole("micro_batch_of_rank", range);
  if (!micro) micro = reader.find_whole("micro_batch", range);
  const auto global = reader.find_whole("global_batch", range);
  auto count = reader.find_whole("n_microbatches", range);
  if (!count) count = reader.find_whole("grad_accum", range);
  if (micro && global) {
    batch.micro = *micro;
    batch.global = *global;
  } else if (micro && count) {
    batch.micro = *micro;
    batch.global = *micro * *count * degrees.data;
  } else if (global && count && *global % (degrees.data * *count) == 0) {
    batch.global = *global;
    batch.micro = *global / (degrees.data * *count);
  } else if (global) {
    batch.global = *global;
    batch.micro = reader.need_whole("micro_batch", range);
  } else {
    reader.miss(micro ? "global_batch is not stated" : "micro_batch is not stated");
  }
  if (batch.global % (batch.micro * degrees.data) != 0) {
    reader.miss("global_batch is not a multiple of micro_batch x dp");
  }
  return batch;
}

void read_realisation(RowReader& reader, RunFacts& facts) {
  const RunDegrees& degrees = facts.degrees;
  if (degrees.tensor > 1) facts.splits_stream = reader.need_whole("sp", {0, 1}) == 1;
  if (degrees.data * degrees.context > 1) {
    facts.sharding_term = reader.find("sharding_term").value_or("");
    if (facts.sharding_term.empty()) {
      facts.sharding_stage = reader.need_whole("zero_stage", {0, 3});
    }
    facts.shard_group = reader.find_whole("shard_group", {1, kMostDegree}).value_or(0);
    if (facts.shard_group > 0 && degrees.data % facts.shard_group != 0) {
      reader.miss("dp is no multiple of shard_group");
    }
  }
  facts.host_runs_ahead = reader.find_whole("host_runs_ahead", {0, 1}).value_or(0) == 1;
  facts.host_us_per_block = reader.find_whole("host_us_per_block", {0, kMostMicroseconds});
  facts.utilisation_percent = reader.find_whole("utilisation_percent", {1, 100});
  if (degrees.layer > 1) {
    facts.schedule = reader.need("pp_schedule");
    facts.stage_blocks = reader.find("stage_blocks").value_or("");
    facts.first_stage_blocks = reader.find_whole("first_stage_layers", {0, kMostLayers});
  }
}

std::optional<double> find_rate(RowReader& reader, const char* column) {
  const auto cell = reader.find(column);
  if (!cell || cell->empty()) return std::nullopt;
  return number_of(*cell, {.least = 1e-3, .greatest = 1e6}, column);
}

// A network or a link inside hosts as a source describes it: by data/validation/words.json, or as
// people write links. What is not understood is noted and stands for the usual one.
std::string read_link(RowReader& reader, const char* column, const RunWords& words,
                      RunFacts& facts) {
  const std::string said(reader.stated(column));
  if (said.empty()) return {};
  const auto table = words.words->find(column);
  if (table != words.words->end()) {
    const auto word = table->second.find(said);
    if (word != table->second.end()) return word->second == "usual" ? "" : word->second;
  }
  std::string meant = meant_network(*words.catalog, said).text;
  if (is_network(*words.catalog, meant)) return meant;
  facts.notes.push_back(std::string(column) + " '" + said +
                        "' is no link that is known: the device's usual one stands in");
  return {};
}

void read_network(RowReader& reader, const RunWords& words, RunFacts& facts) {
  const std::string cluster = reader.find("cluster").value_or("");
  facts.cluster = names_a_file(cluster) ? reference_in(reader.where(), cluster) : cluster;
  if (!facts.cluster.empty()) facts.cluster = meant_cluster(*words.catalog, facts.cluster).text;
  const auto network = reader.find("network");
  const std::string described = read_link(reader, "inter_node", words, facts);
  facts.network = network ? meant_network(*words.catalog, *network).text : described;
  // A cluster that is named knows its own network.
  if (!network && !cluster.empty()) facts.network.clear();
  facts.link_inside = read_link(reader, "intra_node", words, facts);
  facts.devices_per_host = reader.find_whole("gpus_per_node", {1, kMostPerHost}).value_or(0);
  facts.slice_devices = reader.find_whole("slice_devices", {1, kMostDegree}).value_or(0);
  facts.network_bandwidth = find_rate(reader, "network_gb_s");
  facts.bandwidth_of_all = find_rate(reader, "network_of_all_gb_s");
  facts.intra_bandwidth = find_rate(reader, "intra_gb_s");
  facts.network_latency = find_rate(reader, "network_latency_us");
  facts.host_latency = find_rate(reader, "host_latency_us");
  facts.host_latency_inside = find_rate(reader, "host_latency_inside_us");
  facts.host_pace = find_rate(reader, "host_pace").value_or(1);
}

}  // namespace

RunFacts read_run(RowReader& reader, const RunWords& words) {
  RunFacts facts;
  facts.shape = read_shape(reader, words);
  facts.degrees = read_degrees(reader, facts.shape);
  facts.batch = read_batch(reader, facts.shape, facts.degrees);
  read_realisation(reader, facts);
  const auto closer = reader.find("recompute");
  facts.recompute = closer ? *closer : reader.need("act_ckpt");
  facts.precision = reader.need("precision");
  facts.optimizer = reader.need("optimizer");
  facts.device = reader.find("gpu").value_or("");
  read_network(reader, words, facts);
  return facts;
}

}  // namespace placet
