// Families that the transformers library does not hold, or holds under other names: facts from the
// code published with their files (modeling_*.py), recalled where no line says otherwise.
#include <array>
#include <string>
#include <utility>

#include "catalog/families.h"

namespace placet {
namespace {

// --- chatglm (THUDM/chatglm3-6b, THUDM/glm-4-9b): sizes under names of their own.

Sizes read_chatglm_sizes(ConfigObject& config) {
  Sizes sizes;
  sizes.hidden = config.size({"hidden_size"}, kMostWidth);
  sizes.layers = config.size({"num_layers", "num_hidden_layers"}, kMostLayers);
  sizes.vocabulary = config.size({"padded_vocab_size"}, kMostRows);
  sizes.positions = config.count_or({"seq_length"}, 0, kMostRows);
  sizes.heads = config.size({"num_attention_heads"}, kMostHeads);
  sizes.head_size = config.has("kv_channels") ? config.size({"kv_channels"}, kMostWidth)
                                              : sizes.hidden / sizes.heads;
  sizes.kv_heads = config.flag_or({"multi_query_attention"}, false)
                       ? config.size({"multi_query_group_num"}, kMostHeads)
                       : sizes.heads;
  config.require_multiple("multi_query_group_num", sizes.heads, sizes.kv_heads);
  sizes.rotary_size = sizes.head_size / 2;
  config.know({"vocab_size", "multi_query_group_num", "kv_channels", "rope_ratio", "original_rope",
               "pre_seq_len", "prefix_projection", "bias_dropout_fusion",
               "attention_softmax_in_fp32", "apply_query_key_layer_scaling",
               "apply_residual_connection_post_layernorm", "fp32_residual_connection",
               "interleaved_qkv", "quantization_bit", "classifier_dropout", "layernorm_epsilon"});
  return sizes;
}

Architecture read_chatglm(ConfigObject& config) {
  if (!config.flag_or({"rmsnorm"}, true) || !config.flag_or({"post_layer_norm"}, true)) {
    config.fail("rmsnorm", "is not described for this family unless true", "true");
  }
  const DecoderFacts facts{.family = "chatglm",
                           .embedding = "transformer.embedding.word_embeddings.weight",
                           .final_norm = "transformer.encoder.final_layernorm",
                           .output = "transformer.output_layer"};
  const Sizes sizes = read_chatglm_sizes(config);
  Architecture a = read_frame(config, facts, sizes);
  const bool bias = config.flag_or({"add_bias_linear"}, false);
  const bool qkv_bias = bias || config.flag_or({"add_qkv_bias"}, false);
  const std::string layer = "transformer.encoder.layers.{}.";
  const double residual = read_dropout(config, {"hidden_dropout"}, 0);
  Attention attention{.heads = sizes.heads,
                      .kv_heads = sizes.kv_heads,
                      .head_size = sizes.head_size,
                      .value_head_size = sizes.head_size,
                      .layout = QkvLayout::fused,
                      .fused = weights(layer + "self_attention.query_key_value", qkv_bias),
                      .output = weights(layer + "self_attention.dense", bias),
                      .rotary_size = sizes.rotary_size,
                      .dropout = read_dropout(config, {"attention_dropout"}, 0)};
  Mlp mlp{.width = config.size({"ffn_hidden_size"}, kMostWidth),
          .activation = "swiglu",
          .gate_up = weights(layer + "mlp.dense_h_to_4h", bias),
          .down = weights(layer + "mlp.dense_4h_to_h", bias)};
  Sublayer first{.branches = {{.norm = norm(kRms, layer + "input_layernorm"),
                               .mixer = std::move(attention),
                               .dropout = residual}}};
  Sublayer second{.branches = {{.norm = norm(kRms, layer + "post_attention_layernorm"),
                                .mixer = std::move(mlp),
                                .dropout = residual}}};
  a.shapes.push_back({std::move(first), std::move(second)});
  a.order.assign(static_cast<std::size_t>(sizes.layers), 0);
  return a;
}

// --- qwen, the first generation (Qwen/Qwen-7B): intermediate_size counts gate and up together.

Architecture read_qwen(ConfigObject& config) {
  const DecoderFacts facts{.family = "qwen",
                           .layer = "transformer.h.{}.",
                           .embedding = "transformer.wte.weight",
                           .final_norm = "transformer.ln_f"};
  const Sizes sizes = read_sizes(config, facts);
  config.know({"kv_channels", "no_bias", "bf16", "fp16", "fp32", "use_dynamic_ntk",
               "use_cache_quantization", "use_cache_kernel", "softmax_in_fp32", "onnx_safe",
               "rotary_emb_base", "attn_dropout_prob", "emb_dropout_prob", "seq_length",
               "scale_attn_weights"});
  Architecture a = read_frame(config, facts, sizes);
  const std::int64_t both = config.size({"intermediate_size"}, kMostWidth);
  config.require_multiple("intermediate_size", both, 2);
  const std::string h(facts.layer);
  Attention attention{.heads = sizes.heads,
                      .kv_heads = sizes.heads,
                      .head_size = sizes.head_size,
                      .value_head_size = sizes.head_size,
                      .layout = QkvLayout::fused,
                      .fused = weights(h + "attn.c_attn", true),
                      .output = weights(h + "attn.c_proj", false),
                      .rotary_size = sizes.head_size};
  Mlp mlp{.width = both / 2,
          .activation = "silu",
          .gate = weights(h + "mlp.w2", false),
          .up = weights(h + "mlp.w1", false),
          .down = weights(h + "mlp.c_proj", false)};
  Sublayer first{.branches = {{.norm = norm(kRms, h + "ln_1"), .mixer = std::move(attention)}}};
  Sublayer second{.branches = {{.norm = norm(kRms, h + "ln_2"), .mixer = std::move(mlp)}}};
  a.shapes.push_back({std::move(first), std::move(second)});
  a.order.assign(static_cast<std::size_t>(sizes.layers), 0);
  return a;
}

// --- hunyuan mixtures (tencent/Hunyuan-A13B-Instruct; modeling_hunyuan_v1_moe.py of transformers
// 4.57.1): counts may be given layer by layer.

/// A number, or a list of equal numbers one per layer.
std::int64_t read_uniform(ConfigObject& config, std::string_view key, std::int64_t fallback,
                          std::int64_t most) {
  if (!config.raw(key).is_array()) return config.count_or({key}, fallback, most);
  const auto list = config.numbers(key, kMostLayers);
  for (const std::int64_t entry : *list) {
    if (entry != list->front() || entry < 0 || entry > most) {
      config.fail(key, "differs between layers, which is not described for this family",
                  "one number");
    }
  }
  return list->empty() ? fallback : list->front();
}

constexpr DecoderFacts kHunyuanMoe{
    .family = "hunyuan_v1_moe",
    .attention = {.qk_norm = {.on = {.key = "use_qk_norm", .fallback = true},
                              .query = "query_layernorm",
                              .key = "key_layernorm"}},
    .mlp = {.bias = kNever},
    .moe = MoeFacts{.router = "gate.wg", .shared_mlp = {.prefix = "shared_mlp.", .bias = kNever}}};

Architecture read_hunyuan_moe(ConfigObject& config) {
  const DecoderFacts& facts = kHunyuanMoe;
  const Sizes sizes = read_sizes(config, facts);
  if (config.flag_or({"use_cla"}, false)) config.fail("use_cla", "is not described", "false");
  config.know({"cla_share_factor",
               "capacity_factor",
               "moe_drop_tokens",
               "moe_layer_num_skipped",
               "moe_random_routing_dropped_token",
               "use_mixed_mlp_moe",
               "group_limited_greedy",
               "enable_moe_fp32_combine",
               "num_media_embeds",
               "org_vocab_size",
               "pad_id",
               "mask_init_id",
               "im_newline_id",
               "attention_head_dim",
               "norm_type",
               "use_rotary_pos_emb",
               "q_lora_rank",
               "kv_lora_rank",
               "qk_nope_head_dim",
               "qk_rope_head_dim",
               "v_head_dim",
               "n_group",
               "topk_group",
               "use_mla"});
  Architecture a = read_frame(config, facts, sizes);
  const std::string activation = read_activation(config, "silu");
  const std::string layer(facts.layer);
  MoeSizes moe{.experts = read_uniform(config, "num_experts", 1, kMostExperts),
               .per_token = read_uniform(config, "moe_topk", 1, kMostExperts)};
  if (moe.experts == 0 || moe.per_token == 0 || moe.per_token > moe.experts) {
    config.fail("moe_topk", "", "1 to num_experts");
  }
  const std::int64_t dense = config.size({"intermediate_size"}, kMostWidth);
  moe.width = read_uniform(config, "moe_intermediate_size", dense, kMostWidth);
  moe.shared_width = moe.width * read_uniform(config, "num_shared_expert", 1, kMostExperts);
  Sublayer first{.branches = {{.norm = norm(kRms, layer + "input_layernorm"),
                               .mixer = read_attention(config, facts, sizes)}}};
  Sublayer second{.branches = {{.norm = norm(kRms, layer + "post_attention_layernorm"),
                                .mixer = make_moe(*facts.moe, layer, moe, activation)}}};
  a.shapes.push_back({std::move(first), std::move(second)});
  a.order.assign(static_cast<std::size_t>(sizes.layers), 0);
  return a;
}

// --- baichuan

// modeling_baichuan.py of baichuan-inc/Baichuan2-7B-Base and -13B-Base (recalled): the larger one
// has linear attention biases (ALiBi) in place of rotary embeddings; its file has no
// max_position_embeddings.
constexpr DecoderFacts kBaichuan{.family = "baichuan",
                                 .attention = {.fused = "W_pack", .bias = kNever},
                                 .mlp = {.bias = kNever}};

Architecture read_baichuan(ConfigObject& config) {
  DecoderFacts facts = kBaichuan;
  if (!config.has("max_position_embeddings")) facts.attention.rotary_fraction = 0;
  return read_decoder(config, facts);
}

// --- phi3small (microsoft/Phi-3-small-8k-instruct, modeling_phi3_small.py): layer norms and
// biases everywhere; every second block sees a pattern of blocks of keys only.

constexpr DecoderFacts kPhi3Small{
    .family = "phi3small",
    .final_norm = "model.final_layernorm",
    .tied = true,
    .norm = kLayerNorm,
    .attention = {.output = "dense", .fused = "query_key_value", .bias = kAlways},
    .mlp = {.down = "down_proj", .fused = "up_proj", .bias = kAlways}};

Architecture read_phi3_small(ConfigObject& config) {
  const DecoderFacts& facts = kPhi3Small;
  const Sizes sizes = read_sizes(config, facts);
  // The library's class reads no bias and no other shape from these.
  config.know({"attention_bias", "blocksparse_block_size", "blocksparse_triton_kernel_block_size",
               "blocksparse_num_local_blocks", "dense_attention_every_n_layers",
               "rope_embedding_base", "mup_width_multiplier"});
  Architecture a = read_frame(config, facts, sizes);
  a.embedding.dropout = read_dropout(config, {"embedding_dropout_prob"}, 0.1);
  Attention attention = read_attention(config, facts, sizes);
  attention.dropout = read_dropout(config, {"attention_dropout_prob"}, 0);
  const double dropout = read_dropout(config, {"ffn_dropout_prob"}, 0.1);
  if (config.has("ff_dim_multiplier")) {
    config.fail("ff_dim_multiplier", "is not described", "null, and ff_intermediate_size");
  }
  const std::string activation = config.text_or({"hidden_act"}, "gegelu");
  if (activation != "gegelu") config.fail("hidden_act", "", "gegelu");
  const std::string layer(facts.layer);
  a.shapes.push_back(
      two_sublayers(norm(kLayerNorm, layer + "input_layernorm"), std::move(attention),
                    norm(kLayerNorm, layer + "post_attention_layernorm"),
                    make_mlp(facts.mlp, layer, config.size({"ff_intermediate_size"}, kMostWidth),
                             activation, true)));
  a.shapes[0][1].branches[0].dropout = dropout;
  a.order.assign(static_cast<std::size_t>(sizes.layers), 0);
  a.notes.emplace_back("block-sparse attention is counted as full attention");
  return a;
}

constexpr std::array kForeignFamilies{
    ModelFamily{"chatglm", read_chatglm},
    ModelFamily{"qwen", read_qwen},
    ModelFamily{"hunyuan_v1_moe", read_hunyuan_moe},
    ModelFamily{"phi3small", read_phi3_small},
    ModelFamily{"baichuan", read_baichuan},
};

}  // namespace

std::span<const ModelFamily> foreign_families() { return kForeignFamilies; }

}  // namespace placet
