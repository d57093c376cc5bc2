// deepseek_v4: keys of several tokens beside a window, grouped output latents, and residual streams
// side by side. Facts from modeling_deepseek_v4.py of the transformers library, version 5.23.0.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "catalog/families.h"

namespace placet {
namespace {

constexpr MoeFacts v4_experts() {
  MoeFacts facts;
  facts.correction = "gate.e_score_correction_bias";
  facts.shared = MoeFacts::Shared::counted;
  facts.shared_key = "n_shared_experts";
  facts.shared_fallback = 1;
  return facts;
}

constexpr DecoderFacts kDeepseekV4{
    .family = "deepseek_v4", .attention = {.kv_heads = 1, .head_size = 512}, .moe = v4_experts()};

constexpr std::int64_t kMostKeyTokens = 1 << 20;

/// Tokens of a compressed key by block, 0 where there is only a window, and whether its mixture
/// chooses by a table of tokens.
struct V4Block {
  std::int64_t tokens = 0;
  bool hashed = false;
  auto operator<=>(const V4Block&) const = default;
};

/// What the words of the library's files stand for; a file may say other numbers.
struct V4Rates {
  std::int64_t sparse = 4;
  std::int64_t heavy = 128;
};

V4Rates read_rates(ConfigObject& config) {
  V4Rates rates;
  if (config.has("compress_rates")) {
    ConfigObject nested = config.object("compress_rates");
    rates.sparse = nested.size_or({"compressed_sparse_attention"}, rates.sparse, kMostKeyTokens);
    rates.heavy = nested.size_or({"heavily_compressed_attention"}, rates.heavy, kMostKeyTokens);
    finish_nested(nested, {});
  }
  rates.sparse = config.size_or({"compress_rate_csa"}, rates.sparse, kMostKeyTokens);
  rates.heavy = config.size_or({"compress_rate_hca"}, rates.heavy, kMostKeyTokens);
  return rates;
}

std::int64_t rate_of_word(const ConfigObject& config, const V4Rates& rates,
                          const std::string& word) {
  if (word == "sliding_attention") return 0;
  if (word == "compressed_sparse_attention") return rates.sparse;
  if (word == "heavily_compressed_attention") return rates.heavy;
  config.fail("layer_types", "holds '" + word + "'",
              "sliding_attention, compressed_sparse_attention or heavily_compressed_attention");
}

std::int64_t rate_of_number(const ConfigObject& config, const V4Rates& rates, std::int64_t number) {
  if (number == 0 || number == rates.sparse || number == rates.heavy) return number;
  config.fail("compress_ratios", "holds " + std::to_string(number),
              "0, " + std::to_string(rates.sparse) + " or " + std::to_string(rates.heavy));
}

/// A list of at least one entry per layer; none where the file has no such key.
template <class List>
const List& require_entries(const ConfigObject& config, std::string_view key, const List& list,
                            std::int64_t layers) {
  if (list && static_cast<std::int64_t>(list->size()) < layers) {
    config.fail(key, "has fewer entries than there are layers");
  }
  return list;
}

/// Files list one entry more for each prediction module; the rest is the library's rule.
std::vector<V4Block> read_v4_blocks(ConfigObject& config, const V4Rates& rates,
                                    std::int64_t layers) {
  const auto words = config.words("layer_types", kMostLayers);
  const auto numbers = config.numbers("compress_ratios", kMostLayers);
  const auto kinds = config.words("mlp_layer_types", kMostLayers);
  require_entries(config, "layer_types", words, layers);
  require_entries(config, "compress_ratios", numbers, layers);
  require_entries(config, "mlp_layer_types", kinds, layers);
  const std::int64_t hashed = config.count_or({"num_hash_layers"}, 3, kMostLayers);
  const auto rate_at = [&](std::size_t i) {
    if (words) return rate_of_word(config, rates, (*words)[i]);
    if (numbers) return rate_of_number(config, rates, (*numbers)[i]);
    return i < 2 || i % 2 == 0 ? rates.heavy : rates.sparse;
  };
  std::vector<V4Block> blocks(static_cast<std::size_t>(layers));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].tokens = rate_at(i);
    blocks[i].hashed = kinds ? (*kinds)[i] == "hash_moe" : static_cast<std::int64_t>(i) < hashed;
  }
  return blocks;
}

KeyCompressor make_compressor(const std::string& stem, std::int64_t tokens, std::int64_t size,
                              bool overlaps) {
  return {.tokens = tokens,
          .size = size,
          .width = overlaps ? 2 * size : size,
          .key = weights(stem + "kv_proj", false),
          .gate = weights(stem + "gate_proj", false),
          .offsets = stem + "position_bias",
          .norm = norm(kRms, stem + "kv_norm")};
}

Attention read_v4_attention(ConfigObject& config, const Sizes& sizes, const std::string& prefix) {
  const bool bias = config.flag_or({"attention_bias"}, false);
  if (bias) config.fail("attention_bias", "is not described for this family", "false");
  const std::int64_t rotated = config.size_or({"qk_rope_head_dim"}, 64, kMostWidth);
  Attention a{.heads = sizes.heads,
              .kv_heads = 1,
              .head_size = sizes.head_size,
              .value_head_size = sizes.head_size,
              .query = weights(prefix + "q_b_proj", false),
              .key = weights(prefix + "kv_proj", false),
              .output = weights(prefix + "o_b_proj", false),
              .qk_norm = QkNorm{.query = norm(kRmsNoWeight, prefix + "q_b_norm"),
                                .key = norm(kRms, prefix + "kv_norm")},
              .values = ValueSource::keys,
              .rotary_size = rotated,
              .window = config.size_or({"sliding_window"}, 128, kMostRows),
              .sinks = prefix + "sinks",
              .latents = Latents{.query_rank = config.size({"q_lora_rank"}, kMostWidth),
                                 .query_down = weights(prefix + "q_a_proj", false),
                                 .query_norm = norm(kRms, prefix + "q_a_norm")},
              .output_groups = config.size({"o_groups"}, kMostHeads),
              .output_rank = config.size({"o_lora_rank"}, kMostWidth),
              .output_down = weights(prefix + "o_a_proj", false),
              .dropout = read_dropout(config, {"attention_dropout"}, 0)};
  config.require_multiple("o_groups", a.heads, a.output_groups);
  return a;
}

KeySelector read_v4_selector(ConfigObject& config, const std::string& prefix, std::int64_t tokens) {
  const std::string stem = prefix + "compressor.indexer.";
  KeySelector s{.heads = config.size_or({"index_n_heads"}, 64, kMostHeads),
                .head_size = config.size_or({"index_head_dim"}, 128, kMostWidth),
                .keys = config.size_or({"index_topk"}, 512, kMostRows),
                .query = weights(stem + "q_b_proj", false),
                .head_weights = weights(stem + "scorer.weights_proj", false)};
  s.compressor = make_compressor(stem, tokens, s.head_size, true);
  return s;
}

/// Read, mix and write back: n numbers each for reading and writing and n x n for mixing.
StreamMixing v4_mixing(const std::string& stem, std::int64_t streams) {
  const std::int64_t numbers = streams * (streams + 2);
  return {.norm = norm(kRmsNoWeight, stem + "input_norm"),
          .weights = {.weight = stem + "fn"},
          .coefficients = numbers,
          .constants = {{.name = stem + "base", .shape = {numbers}},
                        {.name = stem + "scale", .shape = {3}}}};
}

/// The output takes one number per stream.
StreamMixing v4_final_mixing(const std::string& stem, std::int64_t streams) {
  return {.norm = norm(kRmsNoWeight, stem + "input_norm"),
          .weights = {.weight = stem + "hc_fn"},
          .coefficients = streams,
          .constants = {{.name = stem + "hc_base", .shape = {streams}},
                        {.name = stem + "hc_scale", .shape = {1}}}};
}

/// What the figures leave out of these blocks.
void note_v4(ConfigObject& config, Architecture& a) {
  if (config.count_or({"num_nextn_predict_layers"}, 0, kMostLayers) > 0) {
    a.notes.emplace_back("num_nextn_predict_layers: the prediction modules are left out");
  }
  a.notes.emplace_back(
      "compressed keys: attention's time counts those that a selector chooses, not those of blocks "
      "without one (1 key per 128 tokens), nor the rotation back of the result");
  a.notes.emplace_back("blocks that choose experts by token: the table of choices is not counted");
}

Architecture read_deepseek_v4(ConfigObject& config) {
  const DecoderFacts& facts = kDeepseekV4;
  const Sizes sizes = read_sizes(config, facts);
  config.know({"compress_rope_theta", "hc_eps", "hc_sinkhorn_iters", "expert_dtype", "swiglu_limit",
               "intermediate_size", "mlp_bias"});
  Architecture a = read_frame(config, facts, sizes);
  a.streams = config.size_or({"hc_mult"}, 4, kMostStreams);
  a.head.mixing = v4_final_mixing("model.hc_head.", a.streams);
  const std::string layer(facts.layer);
  const std::string prefix = layer + std::string(facts.attention.prefix);
  const V4Rates rates = read_rates(config);
  const Attention attention = read_v4_attention(config, sizes, prefix);
  const KeySelector selector = read_v4_selector(config, prefix, rates.sparse);
  const Moe moe = make_moe(*facts.moe, layer, read_moe_sizes(config, *facts.moe),
                           read_activation(config, "silu"));
  note_v4(config, a);
  const std::vector<V4Block> blocks = read_v4_blocks(config, rates, sizes.layers);
  add_blocks<V4Block>(a, blocks, [&](const V4Block& block) {
    Attention mixer = attention;
    Moe experts = moe;
    const bool selects = block.tokens == rates.sparse;
    if (selects) mixer.selector = selector;
    if (block.tokens > 0) {
      mixer.compressor =
          make_compressor(prefix + "compressor.", block.tokens, sizes.head_size, selects);
    }
    if (block.hashed) experts.correction.clear();
    BlockShape shape =
        two_sublayers(norm(kRms, layer + "input_layernorm"), std::move(mixer),
                      norm(kRms, layer + "post_attention_layernorm"), std::move(experts));
    shape[0].mixing = v4_mixing(layer + "attn_hc.", a.streams);
    shape[1].mixing = v4_mixing(layer + "ffn_hc.", a.streams);
    for (Sublayer& sublayer : shape) sublayer.returns = true;
    return shape;
  });
  return a;
}

constexpr std::array kCompressedFamilies{
    ModelFamily{"deepseek_v4", read_deepseek_v4},
};

}  // namespace

std::span<const ModelFamily> compressed_families() { return kCompressedFamilies; }

}  // namespace placet
