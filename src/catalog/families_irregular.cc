// Decoders whose blocks differ in size: one entry per layer says how many heads a block has and how
// wide it is. Facts from the code published with their files (modeling_*.py), recalled.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "catalog/families.h"

namespace placet {
namespace {

// --- nemotron-nas: one entry per layer says which parts it has and how large they are.
// modeling_decilm.py of nvidia/Llama-3_1-Nemotron-51B-Instruct (recalled).

/// How one half of a block is made.
enum class NasPart : std::uint8_t { full, linear, none };

struct NasBlock {
  NasPart attention = NasPart::none;
  std::int64_t kv_heads = 0;
  NasPart mlp = NasPart::none;
  std::int64_t width = 0;
  auto operator<=>(const NasBlock&) const = default;
};

NasPart read_nas_part(ConfigObject& part) {
  const bool none = part.flag_or({"no_op"}, false);
  const bool linear = part.flag_or({"replace_with_linear"}, false);
  if (none && linear) part.fail("no_op", "contradicts replace_with_linear");
  if (none) return NasPart::none;
  return linear ? NasPart::linear : NasPart::full;
}

/// Two thirds of 4 h times the multiplier, rounded up to a multiple of 256.
std::int64_t nas_width(double multiplier, std::int64_t hidden) {
  const auto width = static_cast<std::int64_t>(2 * multiplier * static_cast<double>(hidden) / 3);
  return (width + 255) / 256 * 256;
}

NasBlock read_nas_block(ConfigObject& entry, const Sizes& sizes) {
  ConfigObject attention = entry.object("attention");
  ConfigObject mlp = entry.object("ffn");
  NasBlock block{.attention = read_nas_part(attention), .mlp = read_nas_part(mlp)};
  if (block.attention == NasPart::full) {
    const std::int64_t group = attention.size({"n_heads_in_group"}, kMostHeads);
    attention.require_multiple("n_heads_in_group", sizes.heads, group);
    block.kv_heads = sizes.heads / group;
  }
  if (block.mlp == NasPart::full) {
    block.width = mlp.has("intermediate_size")
                      ? mlp.size({"intermediate_size"}, kMostWidth)
                      : nas_width(mlp.number_or({"ffn_mult"}, 0, 0.001, 1000), sizes.hidden);
    if (block.width == 0) mlp.fail("ffn_mult", "", "a factor, or intermediate_size");
  }
  finish_nested(attention,
                {"n_heads_in_group", "window_length", "num_sink_tokens", "unshifted_sink",
                 "use_prefill_window_in_sink_attention", "sparsify", "sliding_window"});
  finish_nested(mlp, {"ffn_mult", "intermediate_size", "sparsify", "hidden_act"});
  return block;
}

/// The sublayer of one half of a block, if it has one.
void add_nas_part(BlockShape& shape, NasPart part, const std::string& norm_name, Mixer full,
                  Projection linear) {
  if (part == NasPart::none) return;
  const bool is_full = part == NasPart::full;
  shape.push_back({.branches = {{.norm = norm(kRms, norm_name),
                                 .mixer = is_full ? std::move(full) : Mixer(std::move(linear))}}});
}

Architecture read_nemotron_nas(ConfigObject& config) {
  const DecoderFacts facts{.family = "nemotron-nas"};
  const Sizes sizes = read_sizes(config, facts);
  config.know({"num_key_value_heads", "intermediate_size", "max_position_embeddings"});
  Architecture a = read_frame(config, facts, sizes);
  const std::string activation = read_activation(config, "silu");
  const Attention attention = read_attention(config, facts, sizes);
  const bool bias = read_switch(config, facts.mlp.bias);
  std::vector<NasBlock> blocks;
  for (ConfigObject& entry : config.objects("block_configs", kMostLayers)) {
    blocks.push_back(read_nas_block(entry, sizes));
  }
  if (static_cast<std::int64_t>(blocks.size()) != sizes.layers) {
    config.fail("block_configs",
                "has " + std::to_string(blocks.size()) + " entries for " +
                    std::to_string(sizes.layers) + " layers",
                "one entry per layer");
  }
  const std::string layer(facts.layer);
  add_blocks<NasBlock>(a, blocks, [&](const NasBlock& block) {
    BlockShape shape;
    Attention mixer = attention;
    mixer.kv_heads = block.kv_heads;
    add_nas_part(
        shape, block.attention, layer + "input_layernorm", std::move(mixer),
        {.names = weights(layer + "self_attn.linear_attn", false), .replaces_attention = true});
    add_nas_part(shape, block.mlp, layer + "post_attention_layernorm",
                 make_mlp(facts.mlp, layer, block.width, activation, bias),
                 {.names = weights(layer + "mlp.linear_mlp", false)});
    return shape;
  });
  return a;
}

// --- deci: the first of them, with kv heads layer by layer and nothing else that differs.
// modeling_decilm.py of Deci/DeciLM-7B (recalled).

Architecture read_deci(ConfigObject& config) {
  const DecoderFacts facts{.family = "deci"};
  const Sizes sizes = read_sizes(config, facts);
  Architecture a = read_frame(config, facts, sizes);
  const std::string activation = read_activation(config, "silu");
  const Attention attention = read_attention(config, facts, sizes);
  const bool bias = read_switch(config, facts.mlp.bias);
  const auto listed = config.numbers("num_key_value_heads_per_layer", kMostLayers);
  const std::vector<std::int64_t> kv_heads = listed.value_or(
      std::vector<std::int64_t>(static_cast<std::size_t>(sizes.layers), sizes.kv_heads));
  if (static_cast<std::int64_t>(kv_heads.size()) != sizes.layers) {
    config.fail("num_key_value_heads_per_layer", "is not one per layer");
  }
  const std::int64_t width = config.size({"intermediate_size"}, kMostWidth);
  const std::string layer(facts.layer);
  add_blocks<std::int64_t>(a, kv_heads, [&](const std::int64_t& heads) {
    if (heads < 1) config.fail("num_key_value_heads_per_layer", "", "1 or more for each layer");
    config.require_multiple("num_key_value_heads_per_layer", sizes.heads, heads);
    Attention mixer = attention;
    mixer.kv_heads = heads;
    return two_sublayers(norm(kRms, layer + "input_layernorm"), std::move(mixer),
                         norm(kRms, layer + "post_attention_layernorm"),
                         make_mlp(facts.mlp, layer, width, activation, bias));
  });
  return a;
}

// --- openelm: heads and widths that grow from block to block.
// modeling_openelm.py and configuration_openelm.py of apple/OpenELM-270M (recalled).

struct ElmBlock {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t width = 0;
  auto operator<=>(const ElmBlock&) const = default;
};

/// The multiple of `divisor` nearest to `value`, but at least nine tenths of it.
std::int64_t near_multiple(double value, std::int64_t divisor) {
  const auto part = static_cast<double>(divisor);
  const auto steps = static_cast<std::int64_t>((value + part / 2) / part);
  const std::int64_t rounded = std::max(divisor, steps * divisor);
  return static_cast<double>(rounded) < 0.9 * value ? rounded + divisor : rounded;
}

std::vector<ElmBlock> read_elm_blocks(ConfigObject& config, std::int64_t hidden,
                                      std::int64_t layers) {
  const auto per_layer = [&](const char* key) {
    const auto list = config.numbers(key, kMostLayers);
    if (!list || static_cast<std::int64_t>(list->size()) != layers) {
      config.fail(key, "is not one number per layer", "a list");
    }
    return *list;
  };
  const std::vector<std::int64_t> heads = per_layer("num_query_heads");
  const std::vector<std::int64_t> kv_heads = per_layer("num_kv_heads");
  const std::int64_t divisor = config.size_or({"ffn_dim_divisor"}, 256, kMostWidth);
  const Json& multipliers = config.raw("ffn_multipliers");
  if (!multipliers.is_array() || static_cast<std::int64_t>(multipliers.size()) != layers) {
    config.fail("ffn_multipliers", "is not one number per layer", "a list");
  }
  std::vector<ElmBlock> blocks;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const Json& multiplier = multipliers[i];
    const bool fits =
        heads[i] >= 1 && heads[i] <= kMostHeads && kv_heads[i] >= 1 && heads[i] % kv_heads[i] == 0;
    if (!fits) config.fail("num_kv_heads", "does not divide the query heads of every layer");
    if (!multiplier.is_number() || multiplier.get<double>() < 0.001 ||
        multiplier.get<double>() > 1000) {
      config.fail("ffn_multipliers", "", "factors from 0.001 to 1000");
    }
    const double width = multiplier.get<double>() * static_cast<double>(hidden);
    blocks.push_back({heads[i], kv_heads[i], near_multiple(width, divisor)});
  }
  return blocks;
}

Architecture read_openelm(ConfigObject& config) {
  DecoderFacts facts{.family = "openelm",
                     .layer = "transformer.layers.{}.",
                     .embedding = "transformer.token_embeddings.weight",
                     .final_norm = "transformer.norm",
                     .mlp = {.prefix = "ffn.", .down = "proj_2", .fused = "proj_1"}};
  facts.tied = config.flag_or({"share_input_output_layers"}, true);
  const Sizes sizes{.hidden = config.size({"model_dim"}, kMostWidth),
                    .layers = config.size({"num_transformer_layers"}, kMostLayers),
                    .vocabulary = config.size({"vocab_size"}, kMostRows),
                    .positions = config.size_or({"max_context_length"}, 2048, kMostRows),
                    .head_size = config.size({"head_dim"}, kMostWidth)};
  config.know({"num_gqa_groups", "qkv_multipliers", "rope_max_length", "rope_freq_constant"});
  if (config.text_or({"normalization_layer_name"}, "rms_norm") != "rms_norm") {
    config.fail("normalization_layer_name", "", "rms_norm");
  }
  Architecture a = read_frame(config, facts, sizes);
  facts.mlp.gated = config.flag_or({"ffn_with_glu"}, true);
  if (!facts.mlp.gated) {
    facts.mlp.fused = "";
    facts.mlp.up = "proj_1";
  }
  const std::string activation = config.text_or({"activation_fn_name"}, "swish");
  const bool normed = config.flag_or({"normalize_qk_projections"}, true);
  const std::string layer(facts.layer);
  const std::vector<ElmBlock> blocks = read_elm_blocks(config, sizes.hidden, sizes.layers);
  add_blocks<ElmBlock>(a, blocks, [&](const ElmBlock& block) {
    Attention mixer{.heads = block.heads,
                    .kv_heads = block.kv_heads,
                    .head_size = sizes.head_size,
                    .value_head_size = sizes.head_size,
                    .layout = QkvLayout::fused,
                    .fused = weights(layer + "attn.qkv_proj", false),
                    .output = weights(layer + "attn.out_proj", false),
                    .rotary_size = sizes.head_size};
    if (normed) {
      mixer.qk_norm = QkNorm{.query = norm(kRms, layer + "attn.q_norm"),
                             .key = norm(kRms, layer + "attn.k_norm")};
    }
    return two_sublayers(norm(kRms, layer + "attn_norm"), std::move(mixer),
                         norm(kRms, layer + "ffn_norm"),
                         make_mlp(facts.mlp, layer, block.width, activation, false));
  });
  return a;
}

constexpr std::array kIrregularFamilies{
    ModelFamily{"nemotron-nas", read_nemotron_nas},
    ModelFamily{"deci", read_deci},
    ModelFamily{"openelm", read_openelm},
};

}  // namespace

std::span<const ModelFamily> irregular_families() { return kIrregularFamilies; }

}  // namespace placet
