// gemma3n_text and gemma4_text: blocks that read a part of a second table of tokens, and blocks
// that take their keys and values from one before. Facts from modeling_gemma3n.py and
// modeling_gemma4.py of the transformers library, version 5.23.0.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "catalog/families.h"

namespace placet {
namespace {

constexpr DecoderFacts kGemma4{
    .family = "gemma4_text",
    .tied = true,
    .attention_norm_after = "post_attention_layernorm",
    .mlp_norm = "pre_feedforward_layernorm",
    .mlp_norm_after = "post_feedforward_layernorm",
    .vocabulary = 262144,
    .attention = {.heads = 8,
                  .kv_heads = 4,
                  .head_size = 256,
                  .qk_norm = {.on = kAlways},
                  .window = {.size_key = "sliding_window", .size = 512, .period = 6},
                  .other = OtherAttentionFacts{.windowed = false,
                                               .kv_heads = "num_global_key_value_heads",
                                               .head_size = "global_head_dim"}},
    .mlp = {.bias = kNever},
    .moe = MoeFacts{.prefix = "",
                    .router = "router.proj",
                    .storage = MoeFacts::Storage::bare,
                    .expert = {.prefix = "experts.", .fused = "gate_up_proj", .bias = kNever}}};

constexpr DecoderFacts kGemma3n{
    .family = "gemma3n_text",
    .tied = true,
    .attention_norm_after = "post_attention_layernorm",
    .mlp_norm = "pre_feedforward_layernorm",
    .mlp_norm_after = "post_feedforward_layernorm",
    .vocabulary = 262400,
    .caps_logits = 30,
    .attention = {.heads = 8,
                  .kv_heads = 2,
                  .head_size = 256,
                  .qk_norm = {.on = kAlways},
                  .window = {.size_key = "sliding_window", .size = 512, .period = 5}},
    .mlp = {.bias = kNever}};

/// What tells these families' blocks apart.
struct GemmaBlock {
  LayerTraits traits;
  bool borrows = false;  // keys and values of a block before
  std::int64_t width = 0;
  auto operator<=>(const GemmaBlock&) const = default;
};

/// The last blocks take keys and values from the last of their kind before them.
void mark_borrowing(ConfigObject& config, std::int64_t fallback, std::vector<GemmaBlock>& blocks) {
  const auto layers = static_cast<std::int64_t>(blocks.size());
  const std::int64_t shared =
      config.count_or({"num_kv_shared_layers"}, std::min(fallback, layers - 1), kMostLayers);
  if (shared >= layers) {
    config.fail("num_kv_shared_layers", "leaves no block with keys and values of its own",
                "fewer than num_hidden_layers");
  }
  for (std::int64_t i = layers - shared; i < layers; ++i) {
    blocks[static_cast<std::size_t>(i)].borrows = true;
  }
}

/// The width of each block: one number, or one per layer.
void read_widths(ConfigObject& config, std::vector<GemmaBlock>& blocks) {
  if (!config.raw("intermediate_size").is_array()) {
    const std::int64_t width = config.size({"intermediate_size"}, kMostWidth);
    for (GemmaBlock& block : blocks) block.width = width;
    return;
  }
  const auto widths = config.numbers("intermediate_size", kMostLayers);
  if (widths->size() != blocks.size()) {
    config.fail("intermediate_size", "is not one number per layer", "a number or a list");
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].width = (*widths)[i];
    if (blocks[i].width < 1 || blocks[i].width > kMostWidth) {
      config.fail("intermediate_size", "holds " + std::to_string(blocks[i].width));
    }
  }
}

/// The width of a block's part of the second table; 0: there is none.
std::int64_t read_block_inputs(ConfigObject& config, const Sizes& sizes, Architecture& a) {
  const std::int64_t width = config.count_or({"hidden_size_per_layer_input"}, 256, kMostWidth);
  const std::int64_t rows = config.size_or({"vocab_size_per_layer_input"}, 262144, kMostRows);
  if (width == 0) return 0;
  a.embedding.block_inputs =
      BlockInputs{.tokens = "model.embed_tokens_per_layer.weight",
                  .rows = rows,
                  .width = width * sizes.layers,
                  .blocks = sizes.layers,
                  .projection = weights("model.per_layer_model_projection", false),
                  .norm = norm(kRms, "model.per_layer_projection_norm")};
  a.notes.emplace_back(
      "per-layer inputs: their tables and projections are counted, what they hand from the "
      "embedding to each block is not");
  return width;
}

/// A gate to the block's part of the second table and a projection back.
Sublayer block_input_sublayer(const std::string& layer, std::int64_t width,
                              const std::string& activation) {
  return {.branches = {{.mixer = Mlp{.width = width,
                                     .gated = false,
                                     .activation = activation,
                                     .up = weights(layer + "per_layer_input_gate", false),
                                     .down = weights(layer + "per_layer_projection", false)},
                        .norm_after = norm(kRms, layer + "post_per_layer_input_norm")}}};
}

void borrow(Attention& attention) {
  attention.values = ValueSource::other_block;
  attention.qk_norm->key = {};
  attention.value_norm = {};
}

constexpr const char* kBorrowed =
    "num_kv_shared_layers: blocks that take keys and values from another have no tensors for them; "
    "what they read is counted as made anew";

Moe make_gemma_moe(const std::string& layer, const MoeSizes& sizes, const std::string& activation) {
  Moe moe = make_moe(*kGemma4.moe, layer, sizes, activation);
  moe.router_norm = norm(kRms, layer + "router");
  moe.router_norm->names.weight = layer + "router.scale";
  moe.expert_scale = layer + "router.per_expert_scale";
  return moe;
}

/// An mlp and a mixture side by side, each between norms of its own.
void add_mixture(Sublayer& channels, const std::string& layer, Moe moe) {
  Branch& dense = channels.branches.front();
  channels.norm_sum =
      std::exchange(dense.norm_after, norm(kRms, layer + "post_feedforward_layernorm_1"));
  channels.branches.push_back({.norm = norm(kRms, layer + "pre_feedforward_layernorm_2"),
                               .mixer = std::move(moe),
                               .norm_after = norm(kRms, layer + "post_feedforward_layernorm_2")});
}

std::vector<GemmaBlock> with_traits(std::vector<LayerTraits> traits) {
  std::vector<GemmaBlock> blocks;
  for (LayerTraits& t : traits) {
    t.sparse = false;
    blocks.push_back({.traits = t});
  }
  return blocks;
}

std::vector<LayerTraits> traits_of(const std::vector<GemmaBlock>& blocks) {
  std::vector<LayerTraits> traits;
  traits.reserve(blocks.size());
  for (const GemmaBlock& block : blocks) traits.push_back(block.traits);
  return traits;
}

/// What the library writes of single layers, in place of the sizes of blocks without a window: the
/// same for all that it names.
void read_overrides(ConfigObject& config, Attention& attention) {
  if (!config.has("per_layer_config")) return;
  const Json& layers = config.raw("per_layer_config");
  if (!layers.is_object() || layers.empty()) return;
  for (const auto& item : layers.items()) {
    if (item.value() == layers.front()) continue;
    config.fail("per_layer_config", "differs between the layers that it names", "equal entries");
  }
  ConfigObject first(layers.front(), config.where(), "per_layer_config");
  attention.head_size = first.size_or({"head_dim"}, attention.head_size, kMostWidth);
  attention.kv_heads = first.size_or({"num_key_value_heads"}, attention.kv_heads, kMostHeads);
  first.require_multiple("num_key_value_heads", attention.heads, attention.kv_heads);
  finish_nested(first, {});
}

Architecture read_gemma4(ConfigObject& config) {
  DecoderFacts facts = kGemma4;
  const bool mixtures = config.flag_or({"enable_moe_block"}, false);
  const std::optional<MoeFacts> moe_facts = std::exchange(facts.moe, std::nullopt);
  const Sizes sizes = read_sizes(config, facts);
  config.know({"use_bidirectional_attention", "num_experts", "top_k_experts",
               "moe_intermediate_size", "per_layer_config"});
  Architecture a = read_frame(config, facts, sizes);
  std::vector<GemmaBlock> blocks = with_traits(read_traits(config, facts, sizes));
  blocks.back().traits.window = 0;  // as the library has it
  mark_borrowing(config, 0, blocks);
  const std::int64_t inputs = read_block_inputs(config, sizes, a);
  const std::vector<LayerTraits> traits = traits_of(blocks);
  DecoderParts parts = read_parts(config, facts, sizes, traits);
  const bool keys_are_values = config.flag_or({"attention_k_eq_v"}, false);
  if (!config.has("global_head_dim")) parts.other->head_size = 512;
  if (!keys_are_values) parts.other->kv_heads = sizes.kv_heads;
  read_overrides(config, *parts.other);
  parts.other->value_head_size = parts.other->head_size;
  parts.other->rotary_size = parts.other->head_size / 4;
  for (Attention* attention : {&parts.attention, &*parts.other}) {
    attention->value_norm = norm(kRmsNoWeight, "v_norm");
  }
  if (keys_are_values) parts.other->values = ValueSource::raw_keys;
  const bool doubled = config.flag_or({"use_double_wide_mlp"}, false);
  const std::string layer(facts.layer);
  const MoeSizes moe = mixtures ? read_moe_sizes(config, *moe_facts) : MoeSizes{};
  if (blocks.back().borrows) a.notes.emplace_back(kBorrowed);
  add_blocks<GemmaBlock>(a, blocks, [&](const GemmaBlock& block) {
    DecoderParts own = parts;
    if (block.borrows) {
      borrow(own.attention);
      borrow(*own.other);
      if (doubled) own.mlp->width *= 2;
    }
    BlockShape shape = make_block(own, block.traits);
    if (mixtures) {
      add_mixture(shape[1], layer, make_gemma_moe(layer, moe, parts.mlp->activation));
    }
    if (inputs > 0) shape.push_back(block_input_sublayer(layer, inputs, parts.mlp->activation));
    return shape;
  });
  return a;
}

// --- gemma3n: of several streams each block predicts all, works on one and corrects all by it.

StreamMixing read_altup(ConfigObject& config, const std::string& layer, std::int64_t hidden,
                        std::int64_t streams) {
  const std::string stem = layer + "altup.";
  config.know({"altup_active_idx", "altup_coef_clip", "altup_correct_scale"});
  return {.constants = {{.name = stem + "router_norm.weight", .shape = {hidden}},
                        {.name = stem + "modality_router.weight", .shape = {streams, hidden}},
                        {.name = stem + "prediction_coefs.weight",
                         .shape = {streams * streams, streams}}},
          .returning = {{.name = stem + "correction_coefs.weight", .shape = {streams, streams}},
                        {.name = stem + "correct_output_scale", .shape = {hidden}}}};
}

/// A low-rank path beside attention.
Branch laurel(ConfigObject& config, const std::string& layer) {
  return {.input = Branch::Input::same,
          .mixer = Projection{.names = weights(layer + "laurel.linear_left", false),
                              .replaces_attention = true,
                              .rank = config.size_or({"laurel_rank"}, 64, kMostWidth),
                              .back = weights(layer + "laurel.linear_right", false)},
          .norm_after = norm(kRms, layer + "laurel.post_laurel_norm")};
}

void read_altup_frame(ConfigObject& config, const Sizes& sizes, Architecture& a) {
  a.streams = config.size_or({"altup_num_inputs"}, 4, kMostStreams);
  if (a.streams < 2) config.fail("altup_num_inputs", "", "2 or more");
  const std::int64_t others = a.streams - 1;
  a.embedding.streams = weights("model.altup_projections.{stream}", false);
  a.head.mixing = StreamMixing{.constants = {{.name = "model.altup_unembed_projections.{stream}"
                                                      ".weight",
                                              .shape = {others, sizes.hidden, sizes.hidden}}}};
}

Architecture read_gemma3n(ConfigObject& config) {
  const DecoderFacts& facts = kGemma3n;
  const Sizes sizes = read_sizes(config, facts);
  config.know({"activation_sparsity_pattern"});
  Architecture a = read_frame(config, facts, sizes);
  read_altup_frame(config, sizes, a);
  const std::vector<LayerTraits> traits = read_traits(config, facts, sizes);
  std::vector<GemmaBlock> blocks = with_traits(traits);
  mark_borrowing(config, 15, blocks);
  read_widths(config, blocks);
  const std::int64_t inputs = read_block_inputs(config, sizes, a);
  DecoderParts parts{.facts = &facts, .attention = read_attention(config, facts, sizes)};
  parts.attention.value_norm = norm(kRmsNoWeight, "v_norm");
  const std::string activation = read_activation(config, "gelu_pytorch_tanh");
  const std::string layer(facts.layer);
  const StreamMixing mixing = read_altup(config, layer, sizes.hidden, a.streams);
  const Branch low_rank = laurel(config, layer);
  if (blocks.back().borrows) a.notes.emplace_back(kBorrowed);
  add_blocks<GemmaBlock>(a, blocks, [&](const GemmaBlock& block) {
    DecoderParts own = parts;
    own.mlp = make_mlp(facts.mlp, layer, block.width, activation, false);
    if (block.borrows) borrow(own.attention);
    BlockShape shape = make_block(own, block.traits);
    shape[0].branches.push_back(low_rank);
    shape[0].mixing = mixing;
    if (inputs > 0) shape.push_back(block_input_sublayer(layer, inputs, activation));
    shape.back().returns = true;
    return shape;
  });
  return a;
}

constexpr std::array kGemmaFamilies{
    ModelFamily{"gemma3n_text", read_gemma3n},
    ModelFamily{"gemma4_text", read_gemma4},
};

}  // namespace

std::span<const ModelFamily> gemma_families() { return kGemmaFamilies; }

}  // namespace placet
