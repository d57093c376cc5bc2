// Mixtures of experts with otherwise ordinary blocks, and latent attention. Facts from the model
// code of the transformers library, version 4.57.1, unless a family says otherwise.
#include <array>

#include "catalog/families.h"

namespace placet {
namespace {

constexpr MlpFacts kNumberedExpert{
    .prefix = "experts.{expert}.", .gate = "w1", .up = "w3", .down = "w2", .bias = kNever};

constexpr DecoderFacts kMixtral{
    .family = "mixtral",
    .attention = {.bias = kNever, .kv_heads = 8, .window = {.size_key = "sliding_window"}},
    .mlp = {.bias = kNever},
    .moe = MoeFacts{.prefix = "block_sparse_moe.", .expert = kNumberedExpert}};

constexpr MoeFacts kQwen2Experts{.shared = MoeFacts::Shared::sized,
                                 .shared_key = "shared_expert_intermediate_size",
                                 .shared_mlp = {.prefix = "shared_expert.", .bias = kNever},
                                 .shared_gate = "shared_expert_gate",
                                 .layers = MoeFacts::Layers::stepped};

constexpr DecoderFacts kQwen2Moe{.family = "qwen2_moe",
                                 .attention = {.bias = {.key = "qkv_bias", .fallback = true},
                                               .output_bias = kNever,
                                               .window = kQwenWindow},
                                 .mlp = {.bias = kNever},
                                 .moe = kQwen2Experts};

constexpr DecoderFacts kQwen3Moe{
    .family = "qwen3_moe",
    .attention = {.kv_heads = 4, .qk_norm = {.on = kAlways}, .window = kQwenWindow},
    .mlp = {.bias = kNever},
    .moe = MoeFacts{.layers = MoeFacts::Layers::stepped}};

constexpr DecoderFacts kOlmoe{.family = "olmoe",
                              .attention = {.qk_norm = {.on = kAlways, .span = QkNorm::Span::full}},
                              .mlp = {.bias = kNever},
                              .moe = MoeFacts{}};

constexpr DecoderFacts kPhiMoe{
    .family = "phimoe",
    .output_bias = {.key = "lm_head_bias"},
    .norm = kLayerNorm,
    .attention = {.kv_heads = 8, .window = {.size_key = "sliding_window"}},
    .mlp = {.bias = kNever},
    .moe = MoeFacts{.prefix = "block_sparse_moe.", .expert = kNumberedExpert}};

constexpr DecoderFacts kGptOss{
    .family = "gpt_oss",
    .attention = {.bias = {.key = "attention_bias", .fallback = true},
                  .kv_heads = 8,
                  .head_size = 64,
                  .window = {.size_key = "sliding_window", .size = 128, .period = 2},
                  .sinks = "sinks"},
    .mlp = {.bias = kNever},
    .moe = MoeFacts{.router = "router",
                    .router_bias = true,
                    .storage = MoeFacts::Storage::bare,
                    .order = WeightOrder::in_out,
                    .expert = {.prefix = "experts.", .fused = "gate_up_proj", .bias = kAlways}}};

constexpr MoeFacts kGraniteExperts{
    .prefix = "block_sparse_moe.",
    .router = "router.layer",
    .storage = MoeFacts::Storage::stacked,
    .expert = {.prefix = "", .down = "output_linear", .fused = "input_linear", .bias = kNever}};

constexpr DecoderFacts kGraniteMoe{
    .family = "granitemoe", .mlp = {.bias = kNever}, .moe = kGraniteExperts};

constexpr MoeFacts kCountedExperts{.shared = MoeFacts::Shared::counted,
                                   .shared_key = "n_shared_experts",
                                   .layers = MoeFacts::Layers::after_dense};

/// The same with a correction of the choice; what files leave out is up to the family.
constexpr MoeFacts corrected(std::int64_t shared, std::int64_t dense) {
  MoeFacts facts = kCountedExperts;
  facts.correction = "gate.e_score_correction_bias";
  facts.shared_fallback = shared;
  facts.dense_fallback = dense;
  return facts;
}

constexpr MoeFacts with_shared(std::int64_t shared) {
  MoeFacts facts = kCountedExperts;
  facts.shared_fallback = shared;
  return facts;
}

constexpr DecoderFacts kGlm4Moe{.family = "glm4_moe",
                                .attention = {.output_bias = kNever,
                                              .rotary_fraction = 0.5,
                                              .qk_norm = {.on = {.key = "use_qk_norm"}}},
                                .mlp = {.bias = kNever},
                                .moe = corrected(1, 1),
                                .predictions = DecoderFacts::Predictions::modelled};

// configuration_glm4_moe_lite.py and configuration_glm_moe_dsa.py of the library, version 5.23.0,
// as of the others below that say so.
constexpr DecoderFacts kGlm4MoeLite{.family = "glm4_moe_lite",
                                    .attention = {.latent = true},
                                    .mlp = {.bias = kNever},
                                    .moe = corrected(1, 1),
                                    .predictions = DecoderFacts::Predictions::modelled};

constexpr DecoderFacts kGlmMoeDsa{
    .family = "glm_moe_dsa",
    .attention = {.latent = true, .selector = {.heads = 32, .head_size = 128, .keys = 2048}},
    .mlp = {.bias = kNever},
    .moe = corrected(1, 3),
    .predictions = DecoderFacts::Predictions::modelled};

// 5.23.0
constexpr DecoderFacts kSolarOpen{.family = "solar_open",
                                  .attention = {.bias = kNever, .kv_heads = 8, .head_size = 128},
                                  .mlp = {.bias = kNever},
                                  .moe = corrected(1, 0)};

constexpr MoeFacts with_shared_key(MoeFacts facts, std::string_view key) {
  facts.shared_key = key;
  return facts;
}

// 5.23.0
constexpr DecoderFacts kExaoneMoe{.family = "exaone_moe",
                                  .attention = {.bias = kNever,
                                                .qk_norm = {.on = kAlways},
                                                .window = {.size_key = "sliding_window",
                                                           .period_key = "sliding_window_pattern",
                                                           .period = 4,
                                                           .unrotated_without = true}},
                                  .mlp = {.bias = kNever},
                                  .moe = with_shared_key(corrected(1, 1), "num_shared_experts"),
                                  .predictions = DecoderFacts::Predictions::left_out};

constexpr MoeFacts hy3_experts() {
  MoeFacts facts = with_shared_key(corrected(1, 1), "num_shared_experts");
  facts.correction = "e_score_correction_bias";
  return facts;
}

// 5.23.0
constexpr DecoderFacts kHyV3{
    .family = "hy_v3",
    .attention = {.bias = kNever, .kv_heads = 8, .head_size = 128, .qk_norm = {.on = kAlways}},
    .mlp = {.bias = kNever},
    .moe = hy3_experts(),
    .predictions = DecoderFacts::Predictions::left_out};

constexpr MoeFacts afmoe_experts() {
  MoeFacts facts = with_shared_key(corrected(2, 1), "num_shared_experts");
  facts.router = "router.gate";
  facts.correction = "expert_bias";
  return facts;
}

// 5.23.0: norms on both sides of both mixers, and a gate on what attention returns.
constexpr DecoderFacts kAfmoe{.family = "afmoe",
                              .attention_norm_after = "post_attention_layernorm",
                              .mlp_norm = "pre_mlp_layernorm",
                              .mlp_norm_after = "post_mlp_layernorm",
                              .attention = {.bias = kNever,
                                            .head_size = 128,
                                            .qk_norm = {.on = kAlways},
                                            .window = {.size_key = "sliding_window",
                                                       .size = 1024,
                                                       .period_key = "global_attn_every_n_layers",
                                                       .period = 4,
                                                       .unrotated_without = true},
                                            .gate = "gate_proj"},
                              .mlp = {.bias = kNever},
                              .moe = afmoe_experts()};

constexpr DecoderFacts kFlexOlmo{
    .family = "flex_olmo",
    .attention_norm = "",
    .attention_norm_after = "post_attention_layernorm",
    .mlp_norm = "",
    .mlp_norm_after = "post_feedforward_layernorm",
    .attention = {.qk_norm = {.on = kAlways, .span = QkNorm::Span::full}},
    .mlp = {.bias = kNever},
    .moe = MoeFacts{}};

constexpr DecoderFacts kAriaText{
    .family = "aria_text",
    .mlp = {.bias = kNever},
    .moe = MoeFacts{.router = "router",
                    .shared = MoeFacts::Shared::counted,
                    .shared_key = "moe_num_shared_experts",
                    .shared_fallback = 2,
                    .shared_mlp = {.prefix = "shared_experts.", .bias = kNever}}};

// modeling_bailing_moe.py of inclusionAI/Ling-lite (recalled).
constexpr DecoderFacts kBailing{.family = "bailing_moe",
                                .embedding = "model.word_embeddings.weight",
                                .attention = {.prefix = "attention.",
                                              .output = "dense",
                                              .fused = "query_key_value",
                                              .bias = {.key = "use_qkv_bias"},
                                              .output_bias = Switch{.key = "use_bias"},
                                              .window = kQwenWindow},
                                .mlp = {.bias = kNever},
                                .moe = with_shared_key(kCountedExperts, "num_shared_experts")};

// 5.23.0. The published file calls itself minimax and tells itself apart by its class.
constexpr DecoderFacts kMiniMaxM2{
    .family = "minimax_m2",
    .attention = {.bias = kNever,
                  .kv_heads = 8,
                  .rotary_fraction = 0.5,
                  .qk_norm = {.on = {.key = "use_qk_norm", .fallback = true},
                              .span = QkNorm::Span::full}},
    .mlp = {.bias = kNever},
    .moe = MoeFacts{.prefix = "block_sparse_moe.",
                    .correction = "e_score_correction_bias",
                    .expert = kNumberedExpert}};

Architecture read_minimax_m2(ConfigObject& config) {
  const auto kinds = config.numbers("attn_type_list", kMostLayers);
  for (const std::int64_t kind : kinds.value_or(std::vector<std::int64_t>{})) {
    if (kind != 1) config.fail("attn_type_list", "holds a layer without full attention", "1");
  }
  if (config.count_or({"shared_intermediate_size"}, 0, kMostWidth) > 0) {
    config.fail("shared_intermediate_size", "is not described for this family", "0");
  }
  config.know({"mlp_intermediate_size", "rotary_dim", "qk_norm_type", "use_routing_bias",
               "shared_moe_mode", "mtp_transformer_layers"});
  Architecture a = read_decoder(config, kMiniMaxM2);
  if (config.count_or({"num_mtp_modules"}, 0, kMostLayers) > 0) {
    a.notes.emplace_back("num_mtp_modules: the prediction modules are left out");
  }
  return a;
}

constexpr DecoderFacts kDots1{.family = "dots1",
                              .attention = {.qk_norm = {.on = kAlways},
                                            .window = {.size_key = "sliding_window",
                                                       .on = {.key = "use_sliding_window"},
                                                       .first_key = "max_window_layers"}},
                              .mlp = {.bias = kNever},
                              .moe = corrected(0, 0)};

constexpr DecoderFacts kErnieMoe{
    .family = "ernie4_5_moe",
    .tied = true,
    .output_bias = {.key = "use_bias"},
    .attention = {.bias = {.key = "use_bias"}},
    .mlp = {.bias = {.key = "use_bias"}},
    .moe = MoeFacts{.correction = "moe_statics.e_score_correction_bias",
                    .expert = {.prefix = "experts.{expert}.", .bias = {.key = "use_bias"}},
                    .shared = MoeFacts::Shared::counted,
                    .shared_key = "moe_num_shared_experts",
                    .shared_fallback = 2,
                    .layers = MoeFacts::Layers::ranged,
                    .dense_fallback = 1},
    .predictions = DecoderFacts::Predictions::left_out};

// modeling_deepseek.py of deepseek-ai/deepseek-moe-16b-base (recalled).
constexpr DecoderFacts kDeepseek{
    .family = "deepseek", .mlp = {.bias = kNever}, .moe = kCountedExperts};

constexpr DecoderFacts kDeepseekV2{.family = "deepseek_v2",
                                   .attention = {.latent = true},
                                   .mlp = {.bias = kNever},
                                   .moe = with_shared(2)};

constexpr DecoderFacts kDeepseekV32{
    .family = "deepseek_v3",
    .attention = {.latent = true, .selector = {.heads = 64, .head_size = 128, .keys = 2048}},
    .mlp = {.bias = kNever},
    .moe = corrected(1, 3),
    .predictions = DecoderFacts::Predictions::modelled};

constexpr DecoderFacts kDeepseekV3{.family = "deepseek_v3",
                                   .attention = {.latent = true},
                                   .mlp = {.bias = kNever},
                                   .moe = corrected(1, 3),
                                   .predictions = DecoderFacts::Predictions::modelled};

// 5.23.0
constexpr DecoderFacts kYoutu{
    .family = "youtu", .tied = true, .attention = {.latent = true}, .mlp = {.bias = kNever}};

/// DeepSeek-V2, and its small relatives with ordinary attention (use_mla false).
Architecture read_deepseek_v2(ConfigObject& config) {
  DecoderFacts facts = kDeepseekV2;
  facts.attention.latent = config.flag_or({"use_mla"}, true);
  config.know({"lm_head", "rm_head"});
  if (!facts.attention.latent) {
    config.know(
        {"kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"});
  }
  return read_decoder(config, facts);
}

// modeling_minicpm.py of openbmb/MiniCPM3-4B (recalled): v_head_dim is hidden / heads, which equals
// qk_nope_head_dim there.
constexpr DecoderFacts kMiniCpm3{
    .family = "minicpm3", .tied = true, .attention = {.latent = true}, .mlp = {.bias = kNever}};

constexpr std::array kSparseFamilies{
    ModelFamily{"mixtral", read_facts<kMixtral>},
    ModelFamily{"qwen2_moe", read_facts<kQwen2Moe>},
    ModelFamily{"qwen3_moe", read_facts<kQwen3Moe>},
    ModelFamily{"qwen3_omni_moe_text", read_facts<kQwen3Moe>},
    ModelFamily{"qwen3_vl_moe_text", read_facts<kQwen3Moe>},
    ModelFamily{"olmoe", read_facts<kOlmoe>},
    ModelFamily{"phimoe", read_facts<kPhiMoe>},
    ModelFamily{"gpt_oss", read_facts<kGptOss>},
    ModelFamily{"granitemoe", read_facts<kGraniteMoe>},
    ModelFamily{"glm4_moe", read_facts<kGlm4Moe>},
    ModelFamily{"glm4v_moe_text", read_facts<kGlm4Moe>},
    ModelFamily{"glm4_moe_lite", read_facts<kGlm4MoeLite>},
    ModelFamily{"glm_moe_dsa", read_facts<kGlmMoeDsa>},
    ModelFamily{"solar_open", read_facts<kSolarOpen>},
    ModelFamily{"exaone_moe", read_facts<kExaoneMoe>},
    ModelFamily{"hy_v3", read_facts<kHyV3>},
    ModelFamily{"afmoe", read_facts<kAfmoe>},
    ModelFamily{"flex_olmo", read_facts<kFlexOlmo>},
    ModelFamily{"aria_text", read_facts<kAriaText>},
    ModelFamily{"bailing_moe", read_facts<kBailing>},
    ModelFamily{"minimax_m2", read_minimax_m2},
    ModelFamily{"youtu", read_facts<kYoutu>},
    ModelFamily{"dots1", read_facts<kDots1>},
    ModelFamily{"ernie4_5_moe", read_facts<kErnieMoe>},
    ModelFamily{"deepseek", read_facts<kDeepseek>},
    ModelFamily{"deepseek_v2", read_deepseek_v2},
    ModelFamily{"deepseek_v3", read_facts<kDeepseekV3>},
    ModelFamily{"deepseek_v32", read_facts<kDeepseekV32>},
    ModelFamily{"kimi_k2", read_facts<kDeepseekV3>},
    ModelFamily{"minicpm3", read_facts<kMiniCpm3>},
};

}  // namespace

std::span<const ModelFamily> sparse_families() { return kSparseFamilies; }

}  // namespace placet
