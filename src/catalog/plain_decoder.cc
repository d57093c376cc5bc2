#include "catalog/plain_decoder.h"

#include <algorithm>
#include <array>

#include "units/error.h"

namespace placet {
namespace {

constexpr std::int64_t kLongestSample = 1'000'000'000;

// Of a table's row the column, of a model's file the key.
std::string place_in(const std::string& where, const std::string& name) {
  return where + ", column " + name;
}

struct MlpWord {
  std::string_view word;
  bool gated;
  std::string_view activation;
};
constexpr std::array<MlpWord, 5> kMlpWords = {{{"swiglu", true, "silu"},
                                               {"geglu", true, "gelu"},
                                               {"gelu", false, "gelu"},
                                               {"relu", false, "relu"},
                                               {"relu2", false, "relu2"}}};

const MlpWord& mlp_word(const std::string& type, const std::string& where) {
  const std::string word = type.substr(0, type.find_first_of(" _+"));
  for (const MlpWord& known : kMlpWords) {
    if (known.word == word) return known;
  }
  throw InputError({.where = place_in(where, "mlp_type"),
                    .value = type,
                    .problem = "is not a known MLP",
                    .allowed = "swiglu, geglu, gelu, relu or relu2"});
}

/// The parts that both layouts share, with or without biases.
struct Parts {
  const PlainDecoder& shape;
  const MlpWord& mlp;

  Weights weights(const std::string& stem) const {
    return {.weight = stem + ".weight", .bias = mlp.gated ? "" : stem + ".bias"};
  }
  Norm norm(const std::string& stem) const {
    return {.kind = mlp.gated ? NormKind::rms : NormKind::layer, .names = weights(stem)};
  }
  Mlp dense(const std::string& stem, std::int64_t width) const {
    return {.width = width,
            .gated = mlp.gated,
            .activation = std::string(mlp.activation),
            .gate = mlp.gated ? weights(stem + ".gate_proj") : Weights{},
            .up = weights(stem + ".up_proj"),
            .down = weights(stem + ".down_proj")};
  }
  Attention attention(const std::string& stem) const {
    Attention attention{.heads = shape.heads,
                        .kv_heads = shape.kv_heads,
                        .head_size = shape.head_size,
                        .value_head_size = shape.head_size,
                        .layout = mlp.gated ? QkvLayout::separate : QkvLayout::fused,
                        .output = weights(stem + ".o_proj"),
                        .rotary_size = shape.positions == "rope" ? shape.head_size : 0,
                        .dropout = shape.dropout};
    if (mlp.gated) {
      attention.query = weights(stem + ".q_proj");
      attention.key = weights(stem + ".k_proj");
      attention.value = weights(stem + ".v_proj");
    } else {
      attention.fused = weights(stem + ".qkv_proj");
    }
    return attention;
  }
  Moe experts(const std::string& stem) const {
    Moe moe{.experts = shape.experts,
            .experts_per_token = shape.experts_per_token,
            .router = {.weight = stem + ".gate.weight"},
            .expert = dense(stem + ".experts.{expert}", shape.expert_width)};
    if (shape.shared_experts > 0) {
      moe.shared = dense(stem + ".shared_experts", shape.shared_experts * shape.expert_width);
    }
    return moe;
  }
  BlockShape block(bool with_experts) const {
    const std::string layer = "model.layers.{}.";
    Branch attends{.norm = norm(layer + "input_layernorm"),
                   .mixer = attention(layer + "self_attn"),
                   .dropout = shape.dropout};
    Branch thinks{
        .norm = norm(layer + "post_attention_layernorm"), .mixer = Mlp{}, .dropout = shape.dropout};
    if (with_experts) {
      thinks.mixer = experts(layer + "mlp");
    } else {
      thinks.mixer = dense(layer + "mlp", shape.ffn);
    }
    return {{.branches = {std::move(attends)}}, {.branches = {std::move(thinks)}}};
  }
};

void add_blocks(const Parts& parts, Architecture& architecture) {
  const PlainDecoder& shape = parts.shape;
  const std::int64_t dense =
      shape.experts == 0 ? shape.layers : std::min(shape.dense_blocks, shape.layers);
  if (dense > 0) architecture.shapes.push_back(parts.block(false));
  if (dense < shape.layers) architecture.shapes.push_back(parts.block(true));
  const int last = static_cast<int>(architecture.shapes.size()) - 1;
  for (std::int64_t i = 0; i < shape.layers; ++i)
    architecture.order.push_back(i < dense ? 0 : last);
}

}  // namespace

Architecture architecture_of(const PlainDecoder& shape, const std::string& where) {
  const Parts parts{.shape = shape, .mlp = mlp_word(shape.mlp_type, where)};
  const bool learned = shape.positions == "learned";
  if (!learned && shape.positions != "rope" && shape.positions != "alibi") {
    throw InputError({.where = place_in(where, "pos_embedding"),
                      .value = shape.positions,
                      .problem = "is not a known position embedding",
                      .allowed = "learned, rope or alibi"});
  }
  Architecture architecture{.name = shape.name,
                            .family = parts.mlp.gated ? "gated decoder" : "plain decoder",
                            .hidden = shape.hidden};
  architecture.embedding = {.vocabulary = shape.vocabulary,
                            .width = shape.hidden,
                            .tokens = "model.embed_tokens.weight",
                            .positions = learned ? "model.embed_positions.weight" : "",
                            .position_rows = learned ? shape.sequence : 0,
                            .dropout = shape.dropout};
  add_blocks(parts, architecture);
  architecture.head = {
      .norm = parts.norm("model.norm"), .output = {.weight = "lm_head.weight"}, .tied = shape.tied};
  return architecture;
}

Architecture read_plain_decoder(ConfigObject& config) {
  PlainDecoder shape;
  shape.layers = config.size({"n_layers"}, kMostLayers);
  shape.hidden = config.size({"hidden"}, kMostWidth);
  shape.heads = config.size({"n_heads"}, kMostHeads);
  shape.kv_heads = config.size_or({"n_kv_heads"}, shape.heads, kMostHeads);
  config.require_multiple("n_heads", shape.heads, shape.kv_heads);
  if (!config.has("head_dim")) config.require_multiple("hidden", shape.hidden, shape.heads);
  shape.head_size = config.size_or({"head_dim"}, shape.hidden / shape.heads, kMostWidth);
  shape.vocabulary = config.size({"vocab"}, kMostRows);
  shape.mlp_type = config.text_or({"mlp_type"}, "swiglu");
  shape.positions = config.text_or({"pos_embedding"}, "rope");
  shape.tied = config.flag_or({"tied_embeddings"}, false);
  shape.sequence = config.size_or({"seq_len"}, 1, kLongestSample);
  shape.dropout = config.number_or({"dropout"}, 0, 0, 0.99);
  shape.experts = config.count_or({"moe_experts"}, 0, kMostExperts);
  if (shape.experts > 0) {
    shape.experts_per_token = config.size({"moe_topk"}, kMostExperts);
    shape.expert_width = config.size({"moe_ffn"}, kMostWidth);
    shape.shared_experts = config.count_or({"moe_shared_experts"}, 0, kMostExperts);
    shape.dense_blocks = config.count_or({"moe_first_dense_layers"}, 0, kMostLayers);
  }
  const bool has_dense = shape.experts == 0 || shape.dense_blocks > 0;
  if (has_dense) shape.ffn = config.size({"ffn"}, kMostWidth);
  Architecture architecture = architecture_of(shape, config.where());
  if (shape.positions == "learned") architecture.embedding.position_rows = shape.sequence;
  return architecture;
}

std::string print_plain_decoder(const PlainDecoder& shape) {
  Json json = {{"model_type", "plain_decoder"}, {"n_layers", shape.layers},
               {"hidden", shape.hidden},        {"n_heads", shape.heads},
               {"n_kv_heads", shape.kv_heads},  {"head_dim", shape.head_size},
               {"mlp_type", shape.mlp_type},    {"vocab", shape.vocabulary},
               {"tied_embeddings", shape.tied}, {"pos_embedding", shape.positions},
               {"seq_len", shape.sequence}};
  if (shape.ffn > 0) json["ffn"] = shape.ffn;
  if (shape.dropout > 0) json["dropout"] = shape.dropout;
  if (shape.experts > 0) {
    json["moe_experts"] = shape.experts;
    json["moe_topk"] = shape.experts_per_token;
    json["moe_ffn"] = shape.expert_width;
    json["moe_shared_experts"] = shape.shared_experts;
    json["moe_first_dense_layers"] = shape.dense_blocks;
  }
  return json.dump(2) + "\n";
}

}  // namespace placet
