// Decoders with linear attention, gated delta nets or state spaces beside full attention, whose
// files list their layers. Facts from the model code of the transformers library, version 4.57.1,
// unless a family says otherwise.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "catalog/families.h"
#include "units/error.h"

namespace placet {
namespace {

using Stream = StateSpace::Stream;

// --- qwen3_next: three gated delta nets, then gated attention

constexpr DecoderFacts kQwen3Next{
    .family = "qwen3_next",
    .attention = {.kv_heads = 2,
                  .head_size = 256,
                  .rotary_fraction = 0.25,
                  .qk_norm = {.on = kAlways}},
    .mlp = {.bias = kNever},
    .moe = MoeFacts{.shared = MoeFacts::Shared::sized,
                    .shared_key = "shared_expert_intermediate_size",
                    .shared_mlp = {.prefix = "shared_expert.", .bias = kNever},
                    .shared_gate = "shared_expert_gate",
                    .layers = MoeFacts::Layers::stepped}};

/// What a delta net's projections of the input are called: queries, keys, values and gate in one
/// tensor and the two steerings in another, or each apart.
enum class DeltaNames : std::uint8_t { joined, apart };

std::vector<StateSpace::Projection> delta_projections(DeltaNames names, const std::string& prefix,
                                                      std::int64_t mixed, std::int64_t values,
                                                      std::int64_t heads) {
  const auto projection = [&](const char* name, std::vector<StateSpace::Slice> slices) {
    return StateSpace::Projection{weights(prefix + name, false), std::move(slices)};
  };
  switch (names) {
    case DeltaNames::joined:
      return {projection("in_proj_qkvz", {{Stream::mixed, mixed}, {Stream::gate, values}}),
              projection("in_proj_ba", {{Stream::step, 2 * heads}})};
    case DeltaNames::apart:
      return {projection("in_proj_qkv", {{Stream::mixed, mixed}}),
              projection("in_proj_z", {{Stream::gate, values}}),
              projection("in_proj_b", {{Stream::step, heads}}),
              projection("in_proj_a", {{Stream::step, heads}})};
  }
  fail_internally("every spelling of a delta net is handled");
}

StateSpace read_delta_net(ConfigObject& config, const std::string& prefix, DeltaNames names) {
  const std::int64_t key_heads = config.size_or({"linear_num_key_heads"}, 16, kMostHeads);
  const std::int64_t value_heads = config.size_or({"linear_num_value_heads"}, 32, kMostHeads);
  const std::int64_t keys = key_heads * config.size_or({"linear_key_head_dim"}, 128, kMostWidth);
  const std::int64_t values =
      value_heads * config.size_or({"linear_value_head_dim"}, 128, kMostWidth);
  config.require_multiple("linear_num_key_heads", value_heads, key_heads);
  return {.recurrence = Recurrence::delta_rule,
          .inner = values,
          .pieces = key_heads,
          .projections = delta_projections(names, prefix, 2 * keys + values, values, value_heads),
          .convolution = weights(prefix + "conv1d", false),
          .kernel = config.size_or({"linear_conv_kernel_dim"}, 4, 1024),
          .constants = {{.name = prefix + "dt_bias", .channels = value_heads},
                        {.name = prefix + "A_log", .channels = value_heads}},
          .norm = norm(kRms, prefix + "norm"),
          .norm_span = StateSpace::NormSpan::shared_head,
          .norm_heads = value_heads,
          .norm_before_gate = true,
          .output = weights(prefix + "out_proj", false)};
}

/// Whether each block has attention; the others are recurrent.
std::vector<bool> read_full_layers(ConfigObject& config, std::int64_t layers, std::int64_t period) {
  std::vector<bool> full(static_cast<std::size_t>(layers));
  const auto types = config.words("layer_types", kMostLayers);
  if (types && types->size() != full.size()) config.fail("layer_types", "is not one per layer");
  for (std::size_t i = 0; i < full.size(); ++i) {
    full[i] =
        types ? (*types)[i] == "full_attention" : (static_cast<std::int64_t>(i) + 1) % period == 0;
    if (types && !full[i] && (*types)[i] != "linear_attention") {
      config.fail("layer_types", "holds '" + (*types)[i] + "'",
                  "full_attention or linear_attention");
    }
  }
  return full;
}

/// Attention and delta nets in turn; mixtures where the family has them.
Architecture read_delta_decoder(ConfigObject& config, const DecoderFacts& facts, DeltaNames names) {
  const Sizes sizes = read_sizes(config, facts);
  Architecture a = read_frame(config, facts, sizes);
  const std::string activation = read_activation(config, "silu");
  const std::string layer(facts.layer);
  Attention attention = read_attention(config, facts, sizes);
  attention.gate = AttentionGate::in_query;
  const StateSpace delta = read_delta_net(config, layer + "linear_attn.", names);
  const std::int64_t period = config.size_or({"full_attention_interval"}, 4, kMostLayers);
  const std::vector<bool> full = read_full_layers(config, sizes.layers, period);
  std::vector<LayerTraits> traits(full.size());
  {
    // The mixtures by the usual rule; windows do not exist here, so layer_types stays out of it.
    DecoderFacts experts{.moe = facts.moe};
    Json bare = Json::object();
    for (const char* key : {"decoder_sparse_step", "mlp_only_layers"}) {
      if (config.has(key)) bare[key] = config.raw(key);
    }
    config.know({"decoder_sparse_step", "mlp_only_layers"});
    ConfigObject rules(bare, config.where());
    traits = read_traits(rules, experts, sizes);
  }
  for (std::size_t i = 0; i < full.size(); ++i) traits[i].rotated = full[i];
  const bool any_dense = !std::ranges::all_of(traits, &LayerTraits::sparse);
  config.know({"intermediate_size"});
  const std::int64_t dense = any_dense ? config.size({"intermediate_size"}, kMostWidth) : 0;
  const MoeSizes moe = facts.moe ? read_moe_sizes(config, *facts.moe) : MoeSizes{};
  if (config.count_or({"mtp_num_hidden_layers"}, 0, kMostLayers) > 0) {
    a.notes.emplace_back("mtp_num_hidden_layers: the prediction modules are left out");
  }
  add_blocks<LayerTraits>(a, traits, [&](const LayerTraits& t) {
    return two_sublayers(norm(kRms, layer + "input_layernorm"),
                         t.rotated ? Mixer(attention) : Mixer(delta),
                         norm(kRms, layer + "post_attention_layernorm"),
                         t.sparse ? Mixer(make_moe(*facts.moe, layer, moe, activation))
                                  : Mixer(make_mlp(facts.mlp, layer, dense, activation, false)));
  });
  return a;
}

Architecture read_qwen3_next(ConfigObject& config) {
  return read_delta_decoder(config, kQwen3Next, DeltaNames::joined);
}

// modeling_qwen3_5.py and modeling_qwen3_5_moe.py of the library, version 5.23.0.
constexpr DecoderFacts qwen3_5(std::string_view family, std::int64_t kv_heads,
                               std::optional<MoeFacts> moe) {
  DecoderFacts facts = kQwen3Next;
  facts.family = family;
  facts.attention.kv_heads = kv_heads;
  facts.moe = moe;
  return facts;
}

constexpr MoeFacts qwen3_5_experts() {
  MoeFacts facts = *kQwen3Next.moe;
  facts.layers = MoeFacts::Layers::all;
  return facts;
}

constexpr DecoderFacts kQwen35 = qwen3_5("qwen3_5_text", 4, std::nullopt);
constexpr DecoderFacts kQwen35Moe = qwen3_5("qwen3_5_moe_text", 2, qwen3_5_experts());

template <const DecoderFacts& kFacts>
Architecture read_qwen3_5(ConfigObject& config) {
  if (!config.flag_or({"attn_output_gate"}, true)) {
    config.fail("attn_output_gate", "is not described for this family unless true", "true");
  }
  return read_delta_decoder(config, kFacts, DeltaNames::apart);
}

// --- minimax: linear attention and, every so often, attention

constexpr DecoderFacts kMiniMax{.family = "minimax",
                                .attention = {.bias = kNever, .kv_heads = 8},
                                .mlp = {.bias = kNever},
                                .moe = MoeFacts{.prefix = "block_sparse_moe.",
                                                .expert = {.prefix = "experts.{expert}.",
                                                           .gate = "w1",
                                                           .up = "w3",
                                                           .down = "w2",
                                                           .bias = kNever}}};

/// The first files say 1 for attention and 0 for linear attention, layer by layer.
std::vector<bool> read_minimax_layers(ConfigObject& config, std::int64_t layers) {
  const auto kinds = config.numbers("attn_type_list", kMostLayers);
  if (!kinds) {
    std::vector<bool> full = read_full_layers(config, layers, 2);
    if (!config.has("layer_types")) full.flip();  // the first of two is attention
    return full;
  }
  if (static_cast<std::int64_t>(kinds->size()) != layers) {
    config.fail("attn_type_list", "is not one per layer");
  }
  std::vector<bool> full;
  for (const std::int64_t kind : *kinds) {
    if (kind != 0 && kind != 1) config.fail("attn_type_list", "", "0 or 1 for each layer");
    full.push_back(kind == 1);
  }
  return full;
}

Architecture read_minimax(ConfigObject& config) {
  const DecoderFacts& facts = kMiniMax;
  const Sizes sizes = read_sizes(config, facts);
  if (config.count_or({"shared_intermediate_size"}, 0, kMostWidth) > 0) {
    config.fail("shared_intermediate_size", "is not described for this family", "0");
  }
  config.know({"block_size", "full_attn_alpha_factor", "full_attn_beta_factor", "mlp_beta_factor",
               "linear_attn_alpha_factor", "linear_attn_beta_factor", "mlp_alpha_factor",
               "sliding_window", "rotary_dim"});
  Architecture a = read_frame(config, facts, sizes);
  const std::string layer(facts.layer);
  const std::string prefix = layer + "self_attn.";
  const Attention attention = read_attention(config, facts, sizes);
  const std::int64_t inner = sizes.heads * sizes.head_size;
  const StateSpace linear{.recurrence = Recurrence::linear_attention,
                          .inner = inner,
                          .pieces = sizes.heads,
                          .projections = {{.names = weights(prefix + "qkv_proj", false),
                                           .slices = {{Stream::mixed, 3 * inner}}},
                                          {.names = weights(prefix + "output_gate", false),
                                           .slices = {{Stream::gate, inner}}}},
                          .norm = norm(kRms, prefix + "norm"),
                          .norm_before_gate = true,
                          .gate = Nonlinearity::sigmoid,
                          .output = weights(prefix + "out_proj", false)};
  const Moe moe = make_moe(*facts.moe, layer, read_moe_sizes(config, *facts.moe),
                           read_activation(config, "silu"));
  const std::vector<bool> full = read_minimax_layers(config, sizes.layers);
  add_blocks<bool>(a, full, [&](const bool& is_full) {
    return two_sublayers(norm(kRms, layer + "input_layernorm"),
                         is_full ? Mixer(attention) : Mixer(linear),
                         norm(kRms, layer + "post_attention_layernorm"), moe);
  });
  return a;
}

// --- nemotron_h: a pattern of single sublayers. modeling_nemotron_h.py of
// nvidia/Nemotron-H-8B-Base-8K and nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 (recalled).

constexpr DecoderFacts kNemotronH{
    .family = "nemotron_h",
    .layer = "backbone.layers.{}.",
    .embedding = "backbone.embeddings.weight",
    .final_norm = "backbone.norm_f",
    .attention = {.prefix = "mixer.", .rotary_fraction = 0},
    .mlp = {.prefix = "mixer.", .gated = false},
    .moe = MoeFacts{.prefix = "mixer.",
                    .correction = "gate.e_score_correction_bias",
                    .expert = {.prefix = "experts.{expert}.", .gated = false, .bias = kNever},
                    .shared = MoeFacts::Shared::sized,
                    .shared_key = "moe_shared_expert_intermediate_size",
                    .shared_mlp = {.prefix = "shared_experts.", .gated = false, .bias = kNever}}};

StateSpace read_nemotron_scan(ConfigObject& config, const std::string& prefix) {
  const std::int64_t heads = config.size({"mamba_num_heads"}, kMostHeads);
  const std::int64_t inner = heads * config.size({"mamba_head_dim"}, kMostWidth);
  const std::int64_t groups = config.size({"n_groups"}, kMostHeads);
  const std::int64_t state = config.size({"ssm_state_size"}, kMostWidth);
  config.require_multiple("n_groups", heads, groups);
  const bool bias = config.flag_or({"use_bias"}, false);  // its code does not read mamba_proj_bias
  return {.recurrence = Recurrence::head_scan,
          .inner = inner,
          .pieces = groups,
          .projections = {{.names = weights(prefix + "in_proj", bias),
                           .slices = {{Stream::gate, inner},
                                      {Stream::mixed, inner + 2 * groups * state},
                                      {Stream::step, heads}}}},
          .convolution = weights(prefix + "conv1d", config.flag_or({"use_conv_bias"}, true)),
          .kernel = config.size_or({"conv_kernel"}, 4, 1024),
          .constants = {{.name = prefix + "dt_bias", .channels = heads},
                        {.name = prefix + "A_log", .channels = heads},
                        {.name = prefix + "D", .channels = heads}},
          .norm = norm(kRms, prefix + "norm"),
          .norm_span = StateSpace::NormSpan::per_group,
          .output = weights(prefix + "out_proj", bias)};
}

/// Experts work on a latent where the file has one (Nemotron 3 Super and Ultra).
Moe read_nemotron_moe(ConfigObject& config, const std::string& layer,
                      const std::string& activation) {
  const MoeFacts& facts = *kNemotronH.moe;
  Moe moe = make_moe(facts, layer, read_moe_sizes(config, facts), activation);
  moe.latent = config.count_or({"moe_latent_size"}, 0, kMostWidth);
  if (moe.latent > 0) {
    const bool bias = read_switch(config, kNemotronH.mlp.bias);
    moe.latent_down = weights(layer + "mixer.fc1_latent_proj", bias);
    moe.latent_up = weights(layer + "mixer.fc2_latent_proj", bias);
  }
  return moe;
}

Mixer read_nemotron_mixer(ConfigObject& config, char kind, const Sizes& sizes,
                          const std::string& activation) {
  const std::string layer(kNemotronH.layer);
  switch (kind) {
    case 'M':
      return read_nemotron_scan(config, layer + "mixer.");
    case '*':
      return read_attention(config, kNemotronH, sizes);
    case '-':
      return make_mlp(kNemotronH.mlp, layer, config.size({"intermediate_size"}, kMostWidth),
                      activation, read_switch(config, kNemotronH.mlp.bias));
    case 'E':
      config.know({"n_shared_experts"});
      return read_nemotron_moe(config, layer, activation);
    default:
      config.fail("hybrid_override_pattern", "",
                  "M (state space), * (attention), - (mlp) or E (experts) for each layer");
  }
}

/// The kinds of the blocks as letters; newer files spell them out.
std::string read_nemotron_pattern(ConfigObject& config) {
  const auto words = config.words("layers_block_type", kMostLayers);
  if (!words) return config.text_or({"hybrid_override_pattern"}, "");
  constexpr std::array<std::pair<std::string_view, char>, 6> kLetters{{{"mamba", 'M'},
                                                                       {"linear_attention", 'M'},
                                                                       {"attention", '*'},
                                                                       {"full_attention", '*'},
                                                                       {"mlp", '-'},
                                                                       {"moe", 'E'}}};
  std::string pattern;
  for (const std::string& word : *words) {
    const auto* const found =
        std::ranges::find(kLetters, word, [](const auto& l) { return l.first; });
    if (found == kLetters.end()) {
      config.fail("layers_block_type", "holds '" + word + "'", "mamba, attention, mlp or moe");
    }
    pattern += found->second;
  }
  config.know({"hybrid_override_pattern"});
  return pattern;
}

Architecture read_nemotron_h(ConfigObject& config) {
  config.know({"expand",
               "chunk_size",
               "time_step_limit",
               "time_step_rank",
               "time_step_min",
               "time_step_max",
               "time_step_floor",
               "mamba_hidden_act",
               "mamba_ssm_cache_dtype",
               "head_dim",
               "attention_head_dim",
               "intermediate_size",
               "mlp_bias",
               "attention_bias",
               "mamba_proj_bias",
               "use_conv_bias",
               "conv_kernel",
               "mamba_num_heads",
               "mamba_head_dim",
               "n_groups",
               "ssm_state_size",
               "residual_in_fp32",
               "use_bias",
               "sliding_window",
               "num_query_groups",
               "rescale_prenorm_residual",
               "n_routed_experts",
               "n_shared_experts",
               "num_experts_per_tok",
               "moe_intermediate_size",
               "moe_shared_expert_intermediate_size",
               "moe_latent_size",
               "mtp_hybrid_override_pattern",
               "mtp_layers_block_type"});
  DecoderFacts facts = kNemotronH;
  facts.attention.head_size = config.count_or({"attention_head_dim"}, 0, kMostWidth);
  const Sizes sizes = read_sizes(config, facts);
  Architecture a = read_frame(config, facts, sizes);
  if (config.count_or({"num_nextn_predict_layers"}, 0, kMostLayers) > 0) {
    a.notes.emplace_back("num_nextn_predict_layers: the prediction modules are left out");
  }
  const std::string act = config.text_or({"mlp_hidden_act"}, "relu2");
  const std::string pattern = read_nemotron_pattern(config);
  if (pattern.size() != static_cast<std::size_t>(sizes.layers)) {
    config.fail("hybrid_override_pattern", "", "one letter per layer (num_hidden_layers)");
  }
  const std::vector<char> kinds(pattern.begin(), pattern.end());
  add_blocks<char>(a, kinds, [&](const char& kind) -> BlockShape {
    return {Sublayer{.branches = {{.norm = norm(kRms, std::string(facts.layer) + "norm"),
                                   .mixer = read_nemotron_mixer(config, kind, sizes, act)}}}};
  });
  return a;
}

constexpr std::array kLinearFamilies{
    ModelFamily{"qwen3_next", read_qwen3_next},
    ModelFamily{"qwen3_5_text", read_qwen3_5<kQwen35>},
    ModelFamily{"qwen3_5_moe_text", read_qwen3_5<kQwen35Moe>},
    ModelFamily{"minimax", read_minimax},
    ModelFamily{"minimax_text_01", read_minimax},
    ModelFamily{"minimax_m1", read_minimax},
    ModelFamily{"nemotron_h", read_nemotron_h},
};

}  // namespace

std::span<const ModelFamily> linear_families() { return kLinearFamilies; }

}  // namespace placet
