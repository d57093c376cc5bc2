// Families of 2025 and 2026 whose blocks are an ordinary decoder's but for a few sizes. Facts from
// the model code of the transformers library, version 5.23.0 (modeling_<family>.py).
#include <array>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "catalog/families.h"

namespace placet {
namespace {

constexpr MoeFacts corrected_experts() {
  MoeFacts facts;
  facts.correction = "gate.e_score_correction_bias";
  return facts;
}

// --- mimo_v2_flash: blocks with a window have kv heads of their own, and sinks.

constexpr MoeFacts mimo_experts() {
  MoeFacts facts = corrected_experts();
  facts.layers = MoeFacts::Layers::after_dense;
  facts.dense_fallback = 1;
  return facts;
}

constexpr DecoderFacts kMiMoV2{
    .family = "mimo_v2_flash",
    .attention = {.output_bias = kNever,
                  .kv_heads = 4,
                  .head_size = 192,
                  .rotary_fraction = 0.334,
                  .window = {.size_key = "sliding_window", .size = 128, .period = 6},
                  .sinks = "attention_sink_bias",
                  .sinks_windowed = {.key = "add_swa_attention_sink_bias", .fallback = true},
                  .sinks_full = {.key = "add_full_attention_sink_bias"},
                  .value_size = "v_head_dim",
                  .other = OtherAttentionFacts{.heads = "swa_num_attention_heads",
                                               .kv_heads = "swa_num_key_value_heads",
                                               .head_size = "swa_head_dim",
                                               .value_size = "swa_v_head_dim"}},
    .mlp = {.bias = kNever},
    .moe = mimo_experts(),
    .predictions = DecoderFacts::Predictions::left_out};

/// Flags of 0 or 1, one per layer.
std::vector<bool> read_flags(ConfigObject& config, std::string_view key, std::int64_t layers) {
  std::vector<bool> flags;
  const auto numbers = config.numbers(key, kMostLayers).value_or(std::vector<std::int64_t>{});
  for (const std::int64_t n : numbers) {
    if (n != 0 && n != 1) config.fail(key, "", "0 or 1 for each layer");
    flags.push_back(n == 1);
  }
  if (flags.size() != static_cast<std::size_t>(layers)) {
    config.fail(key,
                "has " + std::to_string(flags.size()) + " entries for " + std::to_string(layers) +
                    " layers",
                "one entry per layer");
  }
  return flags;
}

Architecture finish_decoder(ConfigObject& config, const DecoderParts& parts, Architecture a,
                            const std::vector<LayerTraits>& traits) {
  add_blocks<LayerTraits>(a, traits,
                          [&](const LayerTraits& layer) { return make_block(parts, layer); });
  add_predictions(config, parts, traits.back(), a);
  return a;
}

Architecture read_mimo_v2(ConfigObject& config) {
  const Sizes sizes = read_sizes(config, kMiMoV2);
  config.know({"sliding_window_size", "attention_chunk_size"});
  Architecture a = read_frame(config, kMiMoV2, sizes);
  std::vector<LayerTraits> traits = read_traits(config, kMiMoV2, sizes);
  const std::int64_t window = config.size_or({"sliding_window"}, 128, kMostRows);
  if (config.has("hybrid_layer_pattern")) {
    const auto flags = read_flags(config, "hybrid_layer_pattern", sizes.layers);
    for (std::size_t i = 0; i < traits.size(); ++i) traits[i].window = flags[i] ? window : 0;
  } else if (!config.has("layer_types")) {
    traits.front().window = 0;  // the first block sees everything, then every sixth
  }
  DecoderParts parts = read_parts(config, kMiMoV2, sizes, traits);
  if (!config.has("swa_num_key_value_heads")) parts.other->kv_heads = 2 * sizes.kv_heads;
  return finish_decoder(config, parts, std::move(a), traits);
}

// --- step3p5, step3p7: blocks with a window may have more heads; a gate with a number per head.

constexpr MoeFacts step_experts() {
  MoeFacts facts = corrected_experts();
  facts.shared = MoeFacts::Shared::sized;
  facts.shared_key = "share_expert_dim";
  facts.shared_fallback = 1280;
  facts.layers = MoeFacts::Layers::after_dense;
  facts.dense_fallback = 3;
  return facts;
}

constexpr DecoderFacts kStep{
    .family = "step3p7",
    .attention = {.kv_heads = 8,
                  .head_size = 128,
                  .qk_norm = {.on = kAlways},
                  .window = {.size_key = "sliding_window", .period = 1},
                  .other = OtherAttentionFacts{.heads = "num_sliding_attention_heads"},
                  .gate = "g_proj",
                  .gated = {.key = "use_head_wise_attn_gate", .fallback = true},
                  .gate_per_head = true},
    .moe = step_experts(),
    .predictions = DecoderFacts::Predictions::left_out};

/// "3,4,5": the numbers of the blocks that are mixtures.
std::vector<std::int64_t> read_number_text(ConfigObject& config, std::string_view key) {
  if (config.raw(key).is_array()) return *config.numbers(key, kMostLayers);
  const std::string text = config.text_or({key}, "");
  std::vector<std::int64_t> numbers;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at != end) {
    std::int64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{} || (next != end && *next != ',')) {
      config.fail(key, "", "numbers of layers with commas between them");
    }
    numbers.push_back(number);
    at = next == end ? end : next + 1;
  }
  return numbers;
}

void mark_step_mixtures(ConfigObject& config, std::vector<LayerTraits>& traits) {
  if (!config.has("moe_layers_enum") || config.has("mlp_layer_types")) return;
  for (LayerTraits& layer : traits) layer.sparse = false;
  for (const std::int64_t i : read_number_text(config, "moe_layers_enum")) {
    if (i < 0) config.fail("moe_layers_enum", "names no layer");
    if (i < static_cast<std::int64_t>(traits.size())) {
      traits[static_cast<std::size_t>(i)].sparse = true;
    }
  }
}

Architecture read_step3(ConfigObject& config) {
  const Sizes sizes = read_sizes(config, kStep);
  // A shared expert is one of `share_expert_dim`, however often files count it.
  config.know({"n_shared_experts",
               "share_expert_dims",
               "use_moe",
               "use_mfa",
               "use_moe_router_bias",
               "moe_layers_enum",
               "num_attention_groups",
               "sink",
               "zero_centered",
               "use_rope_layers",
               "att_impl_type",
               "attention_other_setting",
               "per_layer_config",
               "moe_layer_offset",
               "moe_every_n_layer",
               "moe_router_scaling_factor",
               "mtp_layer_types",
               "mtp_mlp_layer_types",
               "swiglu_limits",
               "swiglu_limits_shared",
               "partial_rotary_factors",
               "use_qk_norm"});
  Architecture a = read_frame(config, kStep, sizes);
  std::vector<LayerTraits> traits = read_traits(config, kStep, sizes);
  mark_step_mixtures(config, traits);
  DecoderParts parts = read_parts(config, kStep, sizes, traits);
  if (config.has("attention_other_setting")) {
    ConfigObject nested = config.object("attention_other_setting");
    parts.other->heads = nested.size_or({"num_attention_heads"}, sizes.heads, kMostHeads);
    parts.other->kv_heads =
        nested.size_or({"num_attention_groups", "num_key_value_heads"}, sizes.kv_heads, kMostHeads);
    parts.other->head_size = nested.size_or({"head_dim"}, sizes.head_size, kMostWidth);
    parts.other->value_head_size = parts.other->head_size;
    nested.require_multiple("num_attention_groups", parts.other->heads, parts.other->kv_heads);
    finish_nested(nested, {"attention_type", "true_head_dim"});
  }
  return finish_decoder(config, parts, std::move(a), traits);
}

// --- minimax_m3: dense blocks first; a key selector that reads the block's input.

constexpr MoeFacts minimax_m3_experts() {
  MoeFacts facts = corrected_experts();
  facts.correction = "e_score_correction_bias";
  facts.prefix = "block_sparse_moe.";
  facts.expert = {
      .prefix = "experts.{expert}.", .gate = "w1", .up = "w3", .down = "w2", .bias = kNever};
  facts.shared = MoeFacts::Shared::sized;
  facts.shared_key = "shared_intermediate_size";
  facts.shared_fallback = 3072;
  facts.layers = MoeFacts::Layers::after_dense;
  return facts;
}

constexpr DecoderFacts kMiniMaxM3{
    .family = "minimax_m3",
    .attention = {.bias = kNever,
                  .kv_heads = 4,
                  .head_size = 128,
                  .rotary_fraction = 0.5,
                  .qk_norm = {.on = {.key = "use_qk_norm", .fallback = true}}},
    .mlp = {.bias = kNever, .width = "dense_intermediate_size"},
    .moe = minimax_m3_experts(),
    .predictions = DecoderFacts::Predictions::left_out};

/// Which blocks choose blocks of keys, and how: nested settings, or the library's flat ones.
struct BlockSelection {
  std::vector<bool> selects;
  KeySelector selector;
};

/// An index without values has no projection for them; the published files have none.
void refuse_values_of_selectors(ConfigObject& nested, const std::vector<bool>& selects) {
  if (!nested.has("sparse_disable_index_value")) return;
  const auto without =
      read_flags(nested, "sparse_disable_index_value", static_cast<std::int64_t>(selects.size()));
  for (std::size_t i = 0; i < without.size(); ++i) {
    if (!selects[i] || without[i]) continue;
    nested.fail("sparse_disable_index_value", "has a selector with values of its own", "1");
  }
}

BlockSelection read_block_selection(ConfigObject& config, std::int64_t layers) {
  BlockSelection result{.selects = std::vector<bool>(static_cast<std::size_t>(layers))};
  std::int64_t block = 128;
  std::int64_t blocks = 16;
  std::int64_t local = 1;
  result.selector = {.heads = 4, .head_size = 128};
  const auto read = [&](ConfigObject& from, std::array<std::string_view, 5> keys) {
    KeySelector& s = result.selector;
    s.heads = from.size_or({keys[0]}, s.heads, kMostHeads);
    s.head_size = from.size_or({keys[1]}, s.head_size, kMostWidth);
    block = from.size_or({keys[2]}, block, kMostRows);
    blocks = from.size_or({keys[3]}, blocks, kMostRows);
    local = from.count_or({keys[4]}, local, kMostRows);
  };
  read(config, {"index_n_heads", "index_head_dim", "index_block_size", "index_topk_blocks",
                "index_local_blocks"});
  if (config.has("sparse_attention_config")) {
    ConfigObject nested = config.object("sparse_attention_config");
    read(nested, {"sparse_num_index_heads", "sparse_index_dim", "sparse_block_size",
                  "sparse_topk_blocks", "sparse_local_block"});
    if (nested.flag_or({"use_sparse_attention"}, true)) {
      result.selects = read_flags(nested, "sparse_attention_freq", layers);
    }
    refuse_values_of_selectors(nested, result.selects);
    finish_nested(nested, {"sparse_attention_freq", "sparse_score_type", "sparse_init_block"});
  }
  const auto types = config.words("layer_types", kMostLayers);
  for (std::size_t i = 0; types && i < types->size() && i < result.selects.size(); ++i) {
    result.selects[i] = (*types)[i] == "minimax_m3_sparse";
  }
  // A query sees the blocks that are chosen, or its own and those before it where these are more.
  result.selector.keys = block * (blocks + local);
  return result;
}

Architecture read_minimax_m3(ConfigObject& config) {
  const Sizes sizes = read_sizes(config, kMiniMaxM3);
  // A file counts its shared expert and says its width, which is that of all together.
  config.know({"rotary_dim", "qk_norm_type", "use_routing_bias", "use_gemma_norm", "swiglu_alpha",
               "swiglu_limit", "n_shared_experts", "num_mtp_modules", "intermediate_size"});
  if (config.flag_or({"attention_output_gate"}, false)) {
    config.fail("attention_output_gate", "is not described for this family", "false");
  }
  Architecture a = read_frame(config, kMiniMaxM3, sizes);
  std::vector<LayerTraits> traits = read_traits(config, kMiniMaxM3, sizes);
  BlockSelection selection = read_block_selection(config, sizes.layers);
  DecoderParts parts = read_parts(config, kMiniMaxM3, sizes, traits);
  const std::string stem = "model.layers.{}.self_attn.indexer.";
  selection.selector.query = weights(stem + "q_proj", false);
  selection.selector.key = weights(stem + "k_proj", false);
  selection.selector.query_norm = norm(kRms, stem + "q_norm");
  selection.selector.key_norm = norm(kRms, stem + "k_norm");
  for (std::size_t i = 0; i < traits.size(); ++i) traits[i].selects = selection.selects[i];
  add_blocks<LayerTraits>(a, traits, [&](const LayerTraits& layer) {
    DecoderParts own = parts;
    if (layer.selects) own.attention.selector = selection.selector;
    return make_block(own, layer);
  });
  add_predictions(config, parts, traits.back(), a);
  return a;
}

constexpr std::array kRecentFamilies{
    ModelFamily{"mimo_v2_flash", read_mimo_v2},
    ModelFamily{"step3p5", read_step3},
    ModelFamily{"step3p7", read_step3},
    ModelFamily{"minimax_m3", read_minimax_m3},
    ModelFamily{"minimax_m3_vl_text", read_minimax_m3},
};

}  // namespace

std::span<const ModelFamily> recent_families() { return kRecentFamilies; }

}  // namespace placet
