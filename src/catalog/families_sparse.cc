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

constexpr DecoderFacts kDeepseekV3{.family = "deepseek_v3",
                                   .attention = {.latent = true},
                                   .mlp = {.bias = kNever},
                                   .moe = corrected(1, 3),
                                   .predictions = DecoderFacts::Predictions::modelled};

// modeling_minicpm.py of openbmb/MiniCPM3-4B (recalled): v_head_dim is hidden / heads, which equals
// qk_nope_head_dim there.
constexpr DecoderFacts kMiniCpm3{
    .family = "minicpm3", .tied = true, .attention = {.latent = true}, .mlp = {.bias = kNever}};

constexpr std::array kSparseFamilies{
    ModelFamily{"mixtral", read_facts<kMixtral>},
    ModelFamily{"qwen2_moe", read_facts<kQwen2Moe>},
    ModelFamily{"qwen3_moe", read_facts<kQwen3Moe>},
    ModelFamily{"qwen3_vl_moe_text", read_facts<kQwen3Moe>},
    ModelFamily{"olmoe", read_facts<kOlmoe>},
    ModelFamily{"phimoe", read_facts<kPhiMoe>},
    ModelFamily{"gpt_oss", read_facts<kGptOss>},
    ModelFamily{"granitemoe", read_facts<kGraniteMoe>},
    ModelFamily{"glm4_moe", read_facts<kGlm4Moe>},
    ModelFamily{"dots1", read_facts<kDots1>},
    ModelFamily{"ernie4_5_moe", read_facts<kErnieMoe>},
    ModelFamily{"deepseek", read_facts<kDeepseek>},
    ModelFamily{"deepseek_v2", read_facts<kDeepseekV2>},
    ModelFamily{"deepseek_v3", read_facts<kDeepseekV3>},
    ModelFamily{"deepseek_v32", read_facts<kDeepseekV3>},
    ModelFamily{"kimi_k2", read_facts<kDeepseekV3>},
    ModelFamily{"minicpm3", read_facts<kMiniCpm3>},
};

}  // namespace

std::span<const ModelFamily> sparse_families() { return kSparseFamilies; }

}  // namespace placet
