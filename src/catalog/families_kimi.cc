// kimi_linear (Kimi-Linear and, with further settings, Kimi-K3): delta attention with a decay per
// channel, and latent attention without positions every so often. Facts from
// modeling_kimi_linear.py of the transformers library, version 5.23.0; those of K3's further
// settings (a latent for experts, gates, sums of earlier blocks) from kimi_k3.py of sglang 0.5.23.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "catalog/families.h"

namespace placet {
namespace {

using Stream = StateSpace::Stream;

constexpr MoeFacts kimi_experts() {
  MoeFacts facts;
  facts.prefix = "block_sparse_moe.";
  facts.correction = "gate.e_score_correction_bias";
  facts.expert = {
      .prefix = "experts.{expert}.", .gate = "w1", .up = "w3", .down = "w2", .bias = kNever};
  facts.shared = MoeFacts::Shared::counted;
  facts.shared_key = "num_shared_experts";
  facts.shared_fallback = 1;
  facts.layers = MoeFacts::Layers::after_dense;
  facts.dense_fallback = 1;
  return facts;
}

constexpr DecoderFacts kKimiLinear{.family = "kimi_linear",
                                   .attention = {.latent = true},
                                   .mlp = {.bias = kNever},
                                   .moe = kimi_experts()};

/// What linear_attn_config says; the library's files say the sizes outside of it.
struct DeltaSettings {
  std::int64_t heads = 32;
  std::int64_t head_size = 128;
  std::int64_t kernel = 4;
  bool whole_gate = false;  // the gate's projection is one matrix, not two of a low rank
  std::vector<bool> full;   // blocks with attention
};

/// Numbers of layers, of which the first is 1.
void mark_numbers(ConfigObject& nested, std::string_view key, std::vector<int>& kinds, int kind) {
  for (const std::int64_t i :
       nested.numbers(key, kMostLayers).value_or(std::vector<std::int64_t>{})) {
    if (i < 1 || i > static_cast<std::int64_t>(kinds.size())) {
      nested.fail(key, "names layer " + std::to_string(i) + " of " + std::to_string(kinds.size()),
                  "numbers from 1 on");
    }
    kinds[static_cast<std::size_t>(i - 1)] = kind;
  }
}

constexpr int kUnsaid = 0;
constexpr int kLinear = 1;
constexpr int kFull = 2;

bool is_full_word(const ConfigObject& config, const std::string& word) {
  if (word == "full_attention") return true;
  if (word == "linear_attention") return false;
  config.fail("layer_types", "holds '" + word + "'", "full_attention or linear_attention");
}

std::vector<bool> read_kinds(ConfigObject& config, const std::vector<int>& kinds) {
  const auto words = config.words("layer_types", kMostLayers);
  if (words && words->size() != kinds.size()) config.fail("layer_types", "is not one per layer");
  std::vector<bool> full(kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    // Where no list says it, every fourth after the first.
    const bool by_rule = kinds[i] == kUnsaid ? i > 0 && i % 4 == 0 : kinds[i] == kFull;
    full[i] = words ? is_full_word(config, (*words)[i]) : by_rule;
  }
  return full;
}

DeltaSettings read_delta(ConfigObject& config, std::int64_t layers) {
  DeltaSettings s;
  s.heads = config.size_or({"linear_num_heads"}, s.heads, kMostHeads);
  s.head_size = config.size_or({"linear_head_dim"}, s.head_size, kMostWidth);
  s.kernel = config.size_or({"linear_conv_kernel_dim"}, s.kernel, 1024);
  std::vector<int> kinds(static_cast<std::size_t>(layers), kUnsaid);
  if (config.has("linear_attn_config")) {
    ConfigObject nested = config.object("linear_attn_config");
    s.heads = nested.size_or({"num_heads"}, s.heads, kMostHeads);
    s.head_size = nested.size_or({"head_dim"}, s.head_size, kMostWidth);
    s.kernel = nested.size_or({"short_conv_kernel_size"}, s.kernel, 1024);
    s.whole_gate = nested.flag_or({"use_full_rank_gate"}, false);
    mark_numbers(nested, "kda_layers", kinds, kLinear);
    mark_numbers(nested, "full_attn_layers", kinds, kFull);
    finish_nested(nested, {"gate_lower_bound"});
  }
  s.full = read_kinds(config, kinds);
  return s;
}

StateSpace make_delta(const DeltaSettings& s, const std::string& prefix) {
  const std::int64_t inner = s.heads * s.head_size;
  const auto mixed = [&](const char* name) {
    return StateSpace::Projection{.names = weights(prefix + name, false),
                                  .slices = {{Stream::mixed, inner}}};
  };
  StateSpace::Projection gate{.names = weights(prefix + "g_proj", false),
                              .slices = {{Stream::gate, inner}}};
  if (!s.whole_gate) {
    gate.names = weights(prefix + "g_b_proj", false);
    gate.rank = s.head_size;
    gate.down = weights(prefix + "g_a_proj", false);
  }
  return {.recurrence = Recurrence::channel_delta_rule,
          .inner = inner,
          .pieces = s.heads,
          .projections = {mixed("q_proj"),
                          mixed("k_proj"),
                          mixed("v_proj"),
                          {.names = weights(prefix + "f_b_proj", false),
                           .slices = {{Stream::step, inner}},
                           .rank = s.head_size,
                           .down = weights(prefix + "f_a_proj", false)},
                          {.names = weights(prefix + "b_proj", false),
                           .slices = {{Stream::step, s.heads}}},
                          std::move(gate)},
          .convolutions = {weights(prefix + "q_conv1d", false), weights(prefix + "k_conv1d", false),
                           weights(prefix + "v_conv1d", false)},
          .kernel = s.kernel,
          .constants = {{.name = prefix + "dt_bias", .channels = inner},
                        {.name = prefix + "A_log", .channels = s.heads}},
          .norm = norm(kRms, prefix + "o_norm"),
          .norm_span = StateSpace::NormSpan::shared_head,
          .norm_heads = s.heads,
          .norm_before_gate = true,
          .gate = Nonlinearity::sigmoid,
          .output = weights(prefix + "o_proj", false)};
}

/// A block's kind: attention or not, mixture or not.
struct KimiBlock {
  bool full = false;
  bool sparse = false;
  auto operator<=>(const KimiBlock&) const = default;
};

/// A latent that routed experts work on, narrower than the stream.
void read_expert_latent(ConfigObject& config, const std::string& stem, Moe& moe) {
  moe.latent = config.count_or({"routed_expert_hidden_size"}, 0, kMostWidth);
  const bool normed = config.flag_or({"latent_moe_use_norm"}, false);
  if (moe.latent == 0) return;
  moe.latent_down = weights(stem + "routed_expert_down_proj", false);
  moe.latent_up = weights(stem + "routed_expert_up_proj", false);
  if (normed) moe.latent_norm = norm(kRms, stem + "routed_expert_norm");
}

/// A weight for the sum so far, beside those of the sums that earlier blocks ended with.
StreamMixing residual_attention(const std::string& stem) {
  return {.norm = norm(kRms, stem + "_res_norm"),
          .weights = {.weight = stem + "_res_proj.weight"},
          .coefficients = 1};
}

void read_residual_attention(ConfigObject& config, const std::string& layer, Architecture& a) {
  if (config.count_or({"attn_res_block_size"}, 0, kMostLayers) == 0) return;
  for (BlockShape& shape : a.shapes) {
    shape[0].mixing = residual_attention(layer + "self_attention");
    shape[1].mixing = residual_attention(layer + "mlp");
  }
  a.head.mixing = residual_attention("model.output_attn");
  a.notes.emplace_back(
      "attn_res_block_size: blocks read a weighted mean of earlier blocks' sums; its tensors are "
      "counted, those sums are not kept or sent");
}

Architecture read_kimi_linear(ConfigObject& config) {
  const DecoderFacts& facts = kKimiLinear;
  const Sizes sizes = read_sizes(config, facts);
  config.know({"mla_use_nope", "moe_renormalize", "moe_router_activation_func", "use_grouped_topk",
               "activation_situ_beta", "activation_situ_linear_beta", "model_max_length",
               "head_dim"});
  Architecture a = read_frame(config, facts, sizes);
  const DeltaSettings settings = read_delta(config, sizes.layers);
  const std::vector<LayerTraits> traits = [&] {
    // layer_types says which blocks have attention, not which have windows.
    DecoderFacts experts{.moe = facts.moe};
    Json bare = Json::object();
    for (const char* key : {"first_k_dense_replace", "moe_layer_freq", "mlp_layer_types"}) {
      if (config.has(key)) bare[key] = config.raw(key);
    }
    ConfigObject rules(bare, config.where());
    return read_traits(rules, experts, sizes);
  }();
  DecoderParts parts = read_parts(config, facts, sizes, traits);
  const std::string layer(facts.layer);
  const std::string prefix = layer + "self_attn.";
  if (config.flag_or({"mla_use_output_gate"}, false)) {
    parts.attention.gate = AttentionGate::separate;
    parts.attention.gate_names = weights(prefix + "g_proj", false);
  }
  if (parts.moe) read_expert_latent(config, layer + "block_sparse_moe.", *parts.moe);
  std::vector<KimiBlock> blocks;
  for (std::size_t i = 0; i < traits.size(); ++i) {
    blocks.push_back({.full = settings.full[i], .sparse = traits[i].sparse});
  }
  add_blocks<KimiBlock>(a, blocks, [&](const KimiBlock& block) {
    return two_sublayers(norm(kRms, layer + "input_layernorm"),
                         block.full ? Mixer(parts.attention) : Mixer(make_delta(settings, prefix)),
                         norm(kRms, layer + "post_attention_layernorm"),
                         block.sparse ? Mixer(*parts.moe) : Mixer(*parts.mlp));
  });
  read_residual_attention(config, layer, a);
  return a;
}

constexpr std::array kKimiFamilies{
    ModelFamily{"kimi_linear", read_kimi_linear},
};

}  // namespace

std::span<const ModelFamily> kimi_families() { return kKimiFamilies; }

}  // namespace placet
