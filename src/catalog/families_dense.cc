// Decoders with the layout of llama or close to it. Facts from the model code of the transformers
// library, version 4.57.1 (src/transformers/models/<family>/modeling_<family>.py), unless a family
// says otherwise.
#include <array>

#include "catalog/families.h"

namespace placet {
namespace {

constexpr NormFacts kLayerNormNoBias{.kind = NormKind::layer};

constexpr DecoderFacts kLlama{.family = "llama"};

constexpr DecoderFacts kMistral{
    .family = "mistral",
    .attention = {.bias = kNever, .kv_heads = 8, .window = {.size_key = "sliding_window"}},
    .mlp = {.bias = kNever}};

// Of the library, version 5.23.0.
constexpr DecoderFacts kMinistral3{.family = "ministral3",
                                   .attention = {.bias = kNever,
                                                 .kv_heads = 8,
                                                 .head_size = 128,
                                                 .window = {.size_key = "sliding_window"}},
                                   .mlp = {.bias = kNever}};

constexpr DecoderFacts kJais2{
    .family = "jais2",
    .norm = kLayerNorm,
    .attention = {.bias = {.key = "attention_bias", .fallback = true}},
    .mlp = {.gated = false, .bias = {.key = "mlp_bias", .fallback = true}}};

constexpr DecoderFacts kQwen2{
    .family = "qwen2",
    .attention = {.bias = kAlways, .output_bias = kNever, .window = kQwenWindow},
    .mlp = {.bias = kNever}};

// modeling_mimo.py of XiaomiMiMo/MiMo-7B-Base (recalled); its prediction layers have a form of
// their own.
constexpr DecoderFacts kMiMo{.family = "mimo",
                             .attention = {.bias = {.key = "attention_bias", .fallback = true},
                                           .output_bias = kNever,
                                           .window = kQwenWindow},
                             .mlp = {.bias = kNever},
                             .predictions = DecoderFacts::Predictions::left_out};

constexpr DecoderFacts kQwen3{
    .family = "qwen3",
    .attention = {.head_size = 128, .qk_norm = {.on = kAlways}, .window = kQwenWindow},
    .mlp = {.bias = kNever}};

constexpr DecoderFacts kGemma{
    .family = "gemma", .tied = true, .attention = {.head_size = 256}, .mlp = {.bias = kNever}};

constexpr DecoderFacts kGemma2{
    .family = "gemma2",
    .tied = true,
    .attention_norm_after = "post_attention_layernorm",
    .mlp_norm = "pre_feedforward_layernorm",
    .mlp_norm_after = "post_feedforward_layernorm",
    .caps_logits = 30,
    .attention = {.head_size = 256,
                  .window = {.size_key = "sliding_window", .size = 4096, .period = 2}},
    .mlp = {.bias = kNever}};

constexpr DecoderFacts kVaultGemma{
    .family = "vaultgemma",
    .tied = true,
    .mlp_norm = "pre_feedforward_layernorm",
    .caps_logits = 30,
    .attention = {.head_size = 256,
                  .window = {.size_key = "sliding_window", .size = 4096, .period = 2}},
    .mlp = {.bias = kNever}};

// The larger published files leave heads and vocabulary to these defaults.
constexpr DecoderFacts kGemma3{.family = "gemma3_text",
                               .tied = true,
                               .attention_norm_after = "post_attention_layernorm",
                               .mlp_norm = "pre_feedforward_layernorm",
                               .mlp_norm_after = "post_feedforward_layernorm",
                               .vocabulary = 262208,
                               .attention = {.heads = 8,
                                             .kv_heads = 4,
                                             .head_size = 256,
                                             .qk_norm = {.on = kAlways},
                                             .window = {.size_key = "sliding_window",
                                                        .size = 4096,
                                                        .period_key = "sliding_window_pattern",
                                                        .period = 6}},
                               .mlp = {.bias = kNever}};

constexpr DecoderFacts kCohere{.family = "cohere",
                               .tied = true,
                               .norm = kLayerNormNoBias,
                               .mlp_norm = "",
                               .parallel = kAlways,
                               .parallel_norm = true,
                               .attention = {.qk_norm = {.on = {.key = "use_qk_norm"},
                                                         .span = QkNorm::Span::each_head,
                                                         .norm = kLayerNormNoBias}},
                               .mlp = {.bias = kNever}};

constexpr DecoderFacts kCohere2{.family = "cohere2",
                                .tied = true,
                                .norm = kLayerNormNoBias,
                                .mlp_norm = "",
                                .parallel = kAlways,
                                .parallel_norm = true,
                                .attention = {.window = {.size_key = "sliding_window",
                                                         .size = 4096,
                                                         .period_key = "sliding_window_pattern",
                                                         .period = 4,
                                                         .unrotated_without = true}},
                                .mlp = {.bias = kNever}};

// Norms without parameters.
constexpr DecoderFacts kOlmo{
    .family = "olmo", .norm = {.kind = NormKind::layer, .weight = false}, .mlp = {.bias = kNever}};

constexpr QkNormFacts kFullQkNorm{.on = kAlways, .span = QkNorm::Span::full};

constexpr DecoderFacts kOlmo2{.family = "olmo2",
                              .attention_norm = "",
                              .attention_norm_after = "post_attention_layernorm",
                              .mlp_norm = "",
                              .mlp_norm_after = "post_feedforward_layernorm",
                              .attention = {.qk_norm = kFullQkNorm},
                              .mlp = {.bias = kNever}};

constexpr DecoderFacts kOlmo3{
    .family = "olmo3",
    .attention_norm = "",
    .attention_norm_after = "post_attention_layernorm",
    .mlp_norm = "",
    .mlp_norm_after = "post_feedforward_layernorm",
    .attention = {.qk_norm = kFullQkNorm,
                  .window = {.size_key = "sliding_window", .size = 4096, .period = 4}},
    .mlp = {.bias = kNever}};

constexpr AttentionFacts kGlmAttention{.bias = {.key = "attention_bias", .fallback = true},
                                       .output_bias = kNever,
                                       .kv_heads = 2,
                                       .head_size = 128,
                                       .rotary_fraction = 0.5};

constexpr DecoderFacts kGlm{
    .family = "glm", .attention = kGlmAttention, .mlp = {.fused = "gate_up_proj", .bias = kNever}};

constexpr DecoderFacts kGlm4{.family = "glm4",
                             .attention_norm_after = "post_self_attn_layernorm",
                             .mlp_norm_after = "post_mlp_layernorm",
                             .attention = kGlmAttention,
                             .mlp = {.fused = "gate_up_proj", .bias = kNever}};

constexpr DecoderFacts kGranite{.family = "granite"};

constexpr DecoderFacts kSeedOss{.family = "seed_oss",
                                .attention = {.bias = {.key = "attention_bias", .fallback = true},
                                              .output_bias = Switch{.key = "attention_out_bias"},
                                              .kv_heads = 8,
                                              .head_size = 128},
                                .residual_dropout = 0.1,
                                .attention_dropout = 0.1};

constexpr DecoderFacts kSmolLm3{.family = "smollm3",
                                .tied = true,
                                .attention = {.kv_heads = 4,
                                              .window = {.size_key = "sliding_window",
                                                         .on = {.key = "use_sliding_window"},
                                                         .unrotated_period = 4}}};

constexpr DecoderFacts kErnie{.family = "ernie4_5",
                              .tied = true,
                              .attention = {.bias = {.key = "use_bias"}, .head_size = 128},
                              .mlp = {.bias = {.key = "use_bias"}}};

constexpr DecoderFacts kHunyuan{
    .family = "hunyuan_v1_dense",
    .attention = {.qk_norm = {.on = {.key = "use_qk_norm", .fallback = true},
                              .query = "query_layernorm",
                              .key = "key_layernorm"}},
    .mlp = {.bias = kNever}};

constexpr DecoderFacts kExaone4{.family = "exaone4",
                                .attention_norm = "",
                                .attention_norm_after = "post_attention_layernorm",
                                .mlp_norm = "",
                                .mlp_norm_after = "post_feedforward_layernorm",
                                .attention = {.bias = kNever,
                                              .qk_norm = {.on = kAlways},
                                              .window = {.size_key = "sliding_window",
                                                         .period_key = "sliding_window_pattern",
                                                         .period = 4,
                                                         .unrotated_without = true}},
                                .mlp = {.bias = kNever}};

// The files' own code: modeling_exaone.py of LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct (recalled).
constexpr DecoderFacts kExaone{
    .family = "exaone",
    .layer = "transformer.h.{}.",
    .embedding = "transformer.wte.weight",
    .final_norm = "transformer.ln_f",
    .attention_norm = "ln_1",
    .mlp_norm = "ln_2",
    .attention = {.prefix = "attn.attention.", .output = "out_proj", .bias = kNever},
    .mlp = {.gate = "c_fc_0", .up = "c_fc_1", .down = "c_proj", .bias = kNever}};

constexpr DecoderFacts kNemotron{.family = "nemotron",
                                 .norm = kLayerNorm,
                                 .attention = {.rotary_fraction = 0.5},
                                 .mlp = {.gated = false}};

constexpr DecoderFacts kStarcoder2{.family = "starcoder2",
                                   .tied = true,
                                   .norm = kLayerNorm,
                                   .attention = {.bias = {.key = "use_bias", .fallback = true},
                                                 .kv_heads = 2,
                                                 .window = {.size_key = "sliding_window"}},
                                   .mlp = {.gated = false,
                                           .up = "c_fc",
                                           .down = "c_proj",
                                           .bias = {.key = "use_bias", .fallback = true}}};

constexpr DecoderFacts kPhi3{
    .family = "phi3",
    .attention = {.fused = "qkv_proj", .bias = kNever, .window = {.size_key = "sliding_window"}},
    .mlp = {.fused = "gate_up_proj", .bias = kNever}};

constexpr DecoderFacts kArcee{.family = "arcee", .mlp = {.gated = false}};

constexpr DecoderFacts kHelium{.family = "helium",
                               .attention = {.output_bias = kNever, .head_size = 128}};

constexpr DecoderFacts kStableLm{.family = "stablelm",
                                 .norm = kLayerNorm,
                                 .parallel = {.key = "use_parallel_residual"},
                                 .parallel_norm = true,
                                 .attention = {.bias = {.key = "use_qkv_bias"},
                                               .output_bias = kNever,
                                               .rotary_fraction = 0.25,
                                               .qk_norm = {.on = {.key = "qk_layernorm"},
                                                           .span = QkNorm::Span::each_head,
                                                           .query = "q_layernorm.norms.{head}",
                                                           .key = "k_layernorm.norms.{head}",
                                                           .norm = kLayerNormNoBias}},
                                 .mlp = {.bias = kNever}};

constexpr DecoderFacts kPersimmon{
    .family = "persimmon",
    .final_norm = "model.final_layernorm",
    .norm = kLayerNorm,
    .attention = {.output = "dense",
                  .fused = "query_key_value",
                  .bias = kAlways,
                  .rotary_fraction = 0.5,
                  .qk_norm = {.on = {.key = "qk_layernorm", .fallback = true},
                              .query = "q_layernorm",
                              .key = "k_layernorm",
                              .norm = kLayerNorm}},
    .mlp = {.gated = false, .up = "dense_h_to_4h", .down = "dense_4h_to_h", .bias = kAlways}};

constexpr DecoderFacts kPhi{.family = "phi",
                            .final_norm = "model.final_layernorm",
                            .output_bias = kAlways,
                            .norm = kLayerNorm,
                            .mlp_norm = "",
                            .parallel = kAlways,
                            .parallel_norm = true,
                            .attention = {.output = "dense",
                                          .bias = kAlways,
                                          .rotary_fraction = 0.5,
                                          .qk_norm = {.on = {.key = "qk_layernorm"},
                                                      .query = "q_layernorm",
                                                      .key = "k_layernorm",
                                                      .norm = kLayerNorm}},
                            .mlp = {.gated = false, .up = "fc1", .down = "fc2", .bias = kAlways}};

constexpr DecoderFacts kGptNeox{
    .family = "gpt_neox",
    .layer = "gpt_neox.layers.{}.",
    .embedding = "gpt_neox.embed_in.weight",
    .final_norm = "gpt_neox.final_layer_norm",
    .output = "embed_out",
    .norm = kLayerNorm,
    .parallel = {.key = "use_parallel_residual", .fallback = true},
    .attention = {.prefix = "attention.",
                  .output = "dense",
                  .fused = "query_key_value",
                  .bias = {.key = "attention_bias", .fallback = true},
                  .rotary_fraction = 0.25},
    .mlp = {.gated = false, .up = "dense_h_to_4h", .down = "dense_4h_to_h", .bias = kAlways}};

// modeling_minicpm.py of openbmb/MiniCPM-2B-sft-bf16 (recalled).
constexpr DecoderFacts kMiniCpm{.family = "minicpm", .tied = true, .mlp = {.bias = kNever}};

// modeling_internlm.py of internlm/internlm-7b, modeling_internlm2.py of internlm/internlm2-7b,
// modeling_internlm3.py of internlm/internlm3-8b-instruct (recalled).
constexpr DecoderFacts kInternLm{.family = "internlm",
                                 .attention = {.bias = {.key = "bias", .fallback = true}},
                                 .mlp = {.bias = kNever}};

constexpr DecoderFacts kInternLm2{
    .family = "internlm2",
    .embedding = "model.tok_embeddings.weight",
    .output = "output",
    .attention_norm = "attention_norm",
    .mlp_norm = "ffn_norm",
    .attention = {.prefix = "attention.", .output = "wo", .fused = "wqkv", .bias = {.key = "bias"}},
    .mlp = {.prefix = "feed_forward.", .gate = "w1", .up = "w3", .down = "w2", .bias = kNever}};

constexpr DecoderFacts kInternLm3{
    .family = "internlm3",
    .attention = {.bias = {.key = "qkv_bias"}, .output_bias = Switch{.key = "bias"}},
    .mlp = {.bias = {.key = "bias"}}};

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

// modeling_orion.py of OrionStarAI/Orion-14B-Base (recalled).
constexpr DecoderFacts kOrion{.family = "orion", .norm = kLayerNorm, .mlp = {.bias = kNever}};

constexpr std::array kDenseFamilies{
    ModelFamily{"llama", read_facts<kLlama>},
    ModelFamily{"code_llama", read_facts<kLlama>},
    ModelFamily{"Yi", read_facts<kLlama>},
    ModelFamily{"aquila", read_facts<kLlama>},
    ModelFamily{"xverse", read_facts<kLlama>},
    ModelFamily{"mistral", read_facts<kMistral>},
    ModelFamily{"ministral", read_facts<kMistral>},
    ModelFamily{"ministral3", read_facts<kMinistral3>},
    ModelFamily{"jais2", read_facts<kJais2>},
    ModelFamily{"qwen2", read_facts<kQwen2>},
    ModelFamily{"qwen2_vl_text", read_facts<kQwen2>},
    ModelFamily{"qwen2_5_vl_text", read_facts<kQwen2>},
    ModelFamily{"qwen2_5_omni_text", read_facts<kQwen2>},
    ModelFamily{"mimo", read_facts<kMiMo>},
    ModelFamily{"qwen3", read_facts<kQwen3>},
    ModelFamily{"qwen3_vl_text", read_facts<kQwen3>},
    ModelFamily{"gemma", read_facts<kGemma>},
    ModelFamily{"gemma2", read_facts<kGemma2>},
    ModelFamily{"vaultgemma", read_facts<kVaultGemma>},
    ModelFamily{"gemma3_text", read_facts<kGemma3>},
    ModelFamily{"cohere", read_facts<kCohere>},
    ModelFamily{"cohere2", read_facts<kCohere2>},
    ModelFamily{"olmo", read_facts<kOlmo>},
    ModelFamily{"olmo2", read_facts<kOlmo2>},
    ModelFamily{"olmo3", read_facts<kOlmo3>},
    ModelFamily{"glm", read_facts<kGlm>},
    ModelFamily{"glm4", read_facts<kGlm4>},
    ModelFamily{"glm4v_text", read_facts<kGlm4>},
    ModelFamily{"granite", read_facts<kGranite>},
    ModelFamily{"seed_oss", read_facts<kSeedOss>},
    ModelFamily{"smollm3", read_facts<kSmolLm3>},
    ModelFamily{"ernie4_5", read_facts<kErnie>},
    ModelFamily{"hunyuan_v1_dense", read_facts<kHunyuan>},
    ModelFamily{"exaone4", read_facts<kExaone4>},
    ModelFamily{"exaone", read_facts<kExaone>},
    ModelFamily{"nemotron", read_facts<kNemotron>},
    ModelFamily{"starcoder2", read_facts<kStarcoder2>},
    ModelFamily{"phi3", read_facts<kPhi3>},
    ModelFamily{"phi", read_facts<kPhi>},
    ModelFamily{"arcee", read_facts<kArcee>},
    ModelFamily{"helium", read_facts<kHelium>},
    ModelFamily{"stablelm", read_facts<kStableLm>},
    ModelFamily{"stablelm_epoch", read_facts<kStableLm>},  // of the files' own code
    ModelFamily{"persimmon", read_facts<kPersimmon>},
    ModelFamily{"gpt_neox", read_facts<kGptNeox>},
    ModelFamily{"minicpm", read_facts<kMiniCpm>},
    ModelFamily{"internlm", read_facts<kInternLm>},
    ModelFamily{"internlm2", read_facts<kInternLm2>},
    ModelFamily{"internlm3", read_facts<kInternLm3>},
    ModelFamily{"baichuan", read_baichuan},
    ModelFamily{"orion", read_facts<kOrion>},
};

}  // namespace

std::span<const ModelFamily> dense_families() { return kDenseFamilies; }

}  // namespace placet
