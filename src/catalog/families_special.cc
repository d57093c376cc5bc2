// Decoders whose files have a form of their own: nested settings, patterns, one entry per layer.
// Facts from the model code of the transformers library, version 4.57.1, unless a family says
// otherwise.
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "catalog/families.h"

namespace placet {
namespace {

/// Settings of a nested object that say nothing about shapes.
void finish_nested(ConfigObject& config, Keys irrelevant) {
  config.know(irrelevant);
  config.know({"tie_word_embeddings"});  // of the outer object; the library writes it here too
  config.finish();
}

// --- mpt (attention settings nested). Learned positions and biases as in the files' own code
// (llm-foundry, llmfoundry/models/mpt/modeling_mpt.py), which the library's code leaves out.

struct MptAttention {
  Attention attention;
  bool alibi = true;  // linear biases: no positions are learned
};

MptAttention read_mpt_attention(ConfigObject& config, const Sizes& sizes, bool bias) {
  const std::string h = "transformer.blocks.{}.attn.";
  MptAttention result;
  Attention& a = result.attention;
  a = {.heads = sizes.heads,
       .kv_heads = sizes.heads,
       .head_size = sizes.head_size,
       .value_head_size = sizes.head_size,
       .layout = QkvLayout::fused,
       .fused = weights(h + "Wqkv", bias),
       .output = weights(h + "out_proj", bias)};
  if (!config.has("attn_config")) return result;
  ConfigObject nested = config.object("attn_config");
  const std::string type = nested.text_or({"attn_type"}, "multihead_attention");
  if (type == "multiquery_attention") {
    a.kv_heads = 1;
  } else if (type == "grouped_query_attention") {
    a.kv_heads = nested.size({"kv_n_heads"}, kMostHeads);
  } else if (type != "multihead_attention") {
    nested.fail("attn_type", "",
                "multihead_attention, multiquery_attention or grouped_query_attention");
  }
  nested.require_multiple("kv_n_heads", a.heads, a.kv_heads);
  result.alibi = nested.flag_or({"alibi"}, true);
  if (nested.flag_or({"rope"}, false)) a.rotary_size = a.head_size;
  if (nested.flag_or({"qk_ln"}, false)) {
    const NormFacts facts{.kind = NormKind::layer, .bias = bias};
    a.qk_norm = QkNorm{.span = QkNorm::Span::full,
                       .query = norm(facts, h + "q_ln"),
                       .key = norm(facts, h + "k_ln")};
  }
  a.dropout = read_dropout(nested, {"attn_pdrop"}, 0);
  finish_nested(nested, {"attn_impl", "softmax_scale", "prefix_lm", "attn_uses_sequence_id",
                         "alibi_bias_max", "sliding_window_size", "kv_n_heads"});
  return result;
}

Architecture read_mpt(ConfigObject& config) {
  const DecoderFacts facts{.family = "mpt",
                           .embedding = "transformer.wte.weight",
                           .final_norm = "transformer.norm_f",
                           .tied = true,
                           .norm = {.kind = NormKind::layer}};
  const Sizes sizes = read_sizes(config, facts);
  const bool bias = !config.flag_or({"no_bias"}, true);
  Architecture a = read_frame(config, facts, sizes);
  const NormFacts layer_norm{.kind = NormKind::layer, .bias = bias};
  a.head.norm = norm(layer_norm, "transformer.norm_f");
  const auto [attention, alibi] = read_mpt_attention(config, sizes, bias);
  if (config.flag_or({"learned_pos_emb"}, true) && !alibi && attention.rotary_size == 0) {
    a.embedding.positions = "transformer.wpe.weight";
    a.embedding.position_rows = config.size({"max_seq_len"}, kMostRows);
  }
  a.embedding.dropout = read_dropout(config, {"emb_pdrop"}, 0);
  const double residual = read_dropout(config, {"resid_pdrop"}, 0);
  const double ratio = config.number_or({"expansion_ratio"}, 4, 0.01, 100);
  const auto width =
      static_cast<std::int64_t>(std::llround(ratio * static_cast<double>(sizes.hidden)));
  const std::string h = "transformer.blocks.{}.";
  const Mlp mlp{.width = width,
                .gated = false,
                .activation = "gelu",
                .up = weights(h + "ffn.up_proj", bias),
                .down = weights(h + "ffn.down_proj", bias)};
  config.know({"norm_type", "embedding_fraction", "init_device", "verbose", "init_config",
               "tokenizer_name", "fc_type", "use_pad_tok_in_ffn", "ffn_config"});
  if (config.has("ffn_config")) {
    ConfigObject nested = config.object("ffn_config");
    if (nested.text_or({"ffn_type"}, "mptmlp") != "mptmlp") {
      nested.fail("ffn_type", "", "mptmlp");
    }
    finish_nested(nested, {"fc_type"});
  }
  a.shapes.push_back(two_sublayers(norm(layer_norm, h + "norm_1"), attention,
                                   norm(layer_norm, h + "norm_2"), mlp));
  for (Sublayer& sublayer : a.shapes[0]) sublayer.branches[0].dropout = residual;
  a.order.assign(static_cast<std::size_t>(sizes.layers), 0);
  return a;
}

// --- dbrx (attention and mixture settings nested). Its experts lie in one matrix per projection,
// [experts x width, hidden]; here they are listed as [experts, width, hidden].

Moe read_dbrx_moe(ConfigObject& config) {
  ConfigObject nested = config.object("ffn_config");
  const std::string ffn = "transformer.blocks.{}.ffn.";
  const std::string stem = ffn + "experts.mlp.";
  Moe moe{.experts = nested.size({"moe_num_experts"}, kMostExperts),
          .experts_per_token = nested.size({"moe_top_k"}, kMostExperts),
          .router = weights(ffn + "router.layer", false),
          .expert = {.width = nested.size({"ffn_hidden_size"}, kMostWidth),
                     .activation = "silu",
                     .gate = {.weight = stem + "w1"},
                     .up = {.weight = stem + "v1"},
                     .down = {.weight = stem + "w2"}}};
  if (moe.experts_per_token > moe.experts) {
    nested.fail("moe_top_k", "is more than the experts there are");
  }
  finish_nested(nested, {"ffn_act_fn", "moe_jitter_eps", "moe_loss_weight",
                         "moe_normalize_expert_weights", "uniform_expert_assignment"});
  return moe;
}

Architecture read_dbrx(ConfigObject& config) {
  const DecoderFacts facts{.family = "dbrx",
                           .embedding = "transformer.wte.weight",
                           .final_norm = "transformer.norm_f",
                           .norm = {.kind = NormKind::layer}};
  Sizes sizes = read_sizes(config, facts);
  Architecture a = read_frame(config, facts, sizes);
  ConfigObject nested = config.object("attn_config");
  sizes.kv_heads = nested.size_or({"kv_n_heads"}, 1, kMostHeads);
  nested.require_multiple("kv_n_heads", sizes.heads, sizes.kv_heads);
  const std::string h = "transformer.blocks.{}.norm_attn_norm.";
  const Attention attention{.heads = sizes.heads,
                            .kv_heads = sizes.kv_heads,
                            .head_size = sizes.head_size,
                            .value_head_size = sizes.head_size,
                            .layout = QkvLayout::fused,
                            .fused = weights(h + "attn.Wqkv", false),
                            .output = weights(h + "attn.out_proj", false),
                            .rotary_size = sizes.head_size,
                            .dropout = read_dropout(nested, {"attn_pdrop"}, 0)};
  finish_nested(nested, {});
  a.embedding.dropout = read_dropout(config, {"emb_pdrop"}, 0);
  const double residual = read_dropout(config, {"resid_pdrop"}, 0);
  a.shapes.push_back(two_sublayers(norm(facts.norm, h + "norm_1"), attention,
                                   norm(facts.norm, h + "norm_2"), read_dbrx_moe(config)));
  for (Sublayer& sublayer : a.shapes[0]) sublayer.branches[0].dropout = residual;
  a.order.assign(static_cast<std::size_t>(sizes.layers), 0);
  return a;
}

// --- llama 4 (text part): every interleave_moe_layer_step-th block is a mixture, every fourth has
// no rotary embedding and sees everything.

constexpr DecoderFacts kLlama4{
    .family = "llama4_text",
    .attention = {.window = {.size_key = "attention_chunk_size",
                             .size = 8192,
                             .unrotated_period = 4}},
    .mlp = {.prefix = "feed_forward.", .bias = kNever},
    .moe = MoeFacts{.prefix = "feed_forward.",
                    .router = "router",
                    .storage = MoeFacts::Storage::bare,
                    .order = WeightOrder::in_out,
                    .expert = {.prefix = "experts.", .fused = "gate_up_proj", .bias = kNever},
                    .shared_mlp = {.prefix = "shared_expert.", .bias = kNever}}};

Architecture read_llama4(ConfigObject& config) {
  const DecoderFacts& facts = kLlama4;
  const Sizes sizes = read_sizes(config, facts);
  config.know({"for_llm_compressor", "attn_temperature_tuning", "use_qk_norm", "layer_types",
               "moe_layers"});
  Architecture a = read_frame(config, facts, sizes);
  const std::string activation = read_activation(config, "silu");
  std::vector<LayerTraits> traits = read_traits(config, facts, sizes);
  const std::int64_t step = config.size_or({"interleave_moe_layer_step"}, 1, kMostLayers);
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    traits[static_cast<std::size_t>(i)].sparse = (i + 1) % step == 0;
  }
  if (const auto listed = config.numbers("moe_layers", kMostLayers)) {
    for (LayerTraits& layer : traits) layer.sparse = false;
    for (const std::int64_t i : *listed) {
      if (i < 0 || i >= sizes.layers) config.fail("moe_layers", "names no layer");
      traits[static_cast<std::size_t>(i)].sparse = true;
    }
  }
  Attention attention = read_attention(config, facts, sizes);
  // Queries and keys of rotated blocks are normalised without weights.
  if (config.flag_or({"use_qk_norm"}, true)) {
    attention.qk_norm = QkNorm{.query = {.kind = NormKind::rms}, .key = {.kind = NormKind::rms}};
  }
  MoeSizes moe = read_moe_sizes(config, *facts.moe);
  moe.shared_width = moe.width;
  const std::int64_t dense = config.size_or({"intermediate_size_mlp"}, 16384, kMostWidth);
  const std::string layer(facts.layer);
  add_blocks<LayerTraits>(a, traits, [&](const LayerTraits& t) {
    Attention mixer = attention;
    mixer.window = t.window;
    if (!t.rotated) {
      mixer.rotary_size = 0;
      mixer.qk_norm.reset();
    }
    return two_sublayers(norm(kRms, layer + "input_layernorm"), std::move(mixer),
                         norm(kRms, layer + "post_attention_layernorm"),
                         t.sparse ? Mixer(make_moe(*facts.moe, layer, moe, activation))
                                  : Mixer(make_mlp(facts.mlp, layer, dense, activation, false)));
  });
  return a;
}

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

constexpr std::array kSpecialFamilies{
    ModelFamily{"mpt", read_mpt},
    ModelFamily{"dbrx", read_dbrx},
    ModelFamily{"llama4_text", read_llama4},
    ModelFamily{"nemotron-nas", read_nemotron_nas},
};

}  // namespace

std::span<const ModelFamily> special_families() { return kSpecialFamilies; }

}  // namespace placet
