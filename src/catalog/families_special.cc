// Decoders whose files have a form of their own: nested settings, patterns, one entry per layer.
// Facts from the model code of the transformers library, version 4.57.1, unless a family says
// otherwise.
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "catalog/families.h"
#include "catalog/plain_decoder.h"

namespace placet {
namespace {

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
  finish_nested(nested, {"ffn_act_fn", "hidden_size", "moe_jitter_eps", "moe_loss_weight",
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
    .attention = {.bias = kNever,
                  .window = {.size_key = "attention_chunk_size",
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

constexpr std::array kSpecialFamilies{
    ModelFamily{"mpt", read_mpt},
    ModelFamily{"dbrx", read_dbrx},
    ModelFamily{"llama4_text", read_llama4},
    ModelFamily{"plain_decoder", read_plain_decoder},
};

}  // namespace

std::span<const ModelFamily> special_families() { return kSpecialFamilies; }

}  // namespace placet
