// Mixtures of experts whose files choose between shapes in ways that no family's file describes.
// Facts from the model code of the transformers library, version 4.57.1, unless a line says
// otherwise.
#include <array>

#include "catalog/families.h"

namespace placet {
namespace {

constexpr MlpFacts kNumberedExpert{
    .prefix = "experts.{expert}.", .gate = "w1", .up = "w3", .down = "w2", .bias = kNever};

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

constexpr DecoderFacts kDeepseekV2{.family = "deepseek_v2",
                                   .attention = {.latent = true},
                                   .mlp = {.bias = kNever},
                                   .moe = MoeFacts{.shared = MoeFacts::Shared::counted,
                                                   .shared_key = "n_shared_experts",
                                                   .shared_fallback = 2,
                                                   .layers = MoeFacts::Layers::after_dense}};

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

constexpr std::array kSparseFamilies{
    ModelFamily{"minimax_m2", read_minimax_m2},
    ModelFamily{"deepseek_v2", read_deepseek_v2},
};

}  // namespace

std::span<const ModelFamily> sparse_families() { return kSparseFamilies; }

}  // namespace placet
