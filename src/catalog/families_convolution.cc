// Decoders whose blocks mix tokens with short gated convolutions and, here and there, attention.
// Facts from the model code of the transformers library, version 4.57.1, unless a family says
// otherwise.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "catalog/families.h"

namespace placet {
namespace {

using Stream = StateSpace::Stream;

constexpr DecoderFacts kLfm2{
    .family = "lfm2",
    .final_norm = "model.embedding_norm",
    .tied = true,
    .attention = {.output = "out_proj",
                  .bias = kNever,
                  .kv_heads = 8,
                  .qk_norm = {.on = kAlways, .query = "q_layernorm", .key = "k_layernorm"}},
    .mlp = {.prefix = "feed_forward.", .gate = "w1", .up = "w3", .down = "w2", .bias = kNever}};

/// Two thirds of the width that the file names, times its multiplier, rounded up to a multiple.
std::int64_t read_lfm2_width(ConfigObject& config) {
  const std::int64_t width = config.has("block_ff_dim")
                                 ? config.size({"block_ff_dim"}, kMostWidth)
                                 : config.size({"intermediate_size"}, kMostWidth);
  config.know({"intermediate_size"});
  const double multiplier = config.number_or({"block_ffn_dim_multiplier"}, 1, 0.001, 1000);
  const std::int64_t multiple = config.size_or({"block_multiple_of"}, 256, kMostWidth);
  if (!config.flag_or({"block_auto_adjust_ff_dim"}, true)) return width;
  const std::int64_t gated = 2 * width / 3;  // whole, as the library rounds it
  const auto scaled = static_cast<std::int64_t>(multiplier * static_cast<double>(gated));
  return (scaled + multiple - 1) / multiple * multiple;
}

/// The blocks with attention: listed by number, or by the kind of every layer.
std::vector<bool> read_lfm2_layers(ConfigObject& config, std::int64_t layers) {
  std::vector<bool> full(static_cast<std::size_t>(layers));
  const auto types = config.words("layer_types", kMostLayers);
  if (types && types->size() != full.size()) config.fail("layer_types", "is not one per layer");
  for (std::size_t i = 0; types && i < full.size(); ++i) {
    full[i] = (*types)[i] == "full_attention";
    if (!full[i] && (*types)[i] != "conv") {
      config.fail("layer_types", "holds '" + (*types)[i] + "'", "full_attention or conv");
    }
  }
  const auto listed = config.numbers("full_attn_idxs", kMostLayers);
  if (types) return full;
  if (!listed) return std::vector<bool>(full.size(), true);
  for (const std::int64_t i : *listed) {
    if (i < 0 || i >= layers) config.fail("full_attn_idxs", "names no layer");
    full[static_cast<std::size_t>(i)] = true;
  }
  return full;
}

constexpr MoeFacts kLfm2Experts{
    .prefix = "feed_forward.",
    .correction = "expert_bias",
    .expert = {
        .prefix = "experts.{expert}.", .gate = "w1", .up = "w3", .down = "w2", .bias = kNever}};

/// Which blocks have attention and which are mixtures.
struct Lfm2Block {
  bool full = false;
  bool sparse = false;
  auto operator<=>(const Lfm2Block&) const = default;
};

std::vector<Lfm2Block> join_lfm2_blocks(const std::vector<bool>& full,
                                        const std::vector<bool>& sparse) {
  std::vector<Lfm2Block> blocks;
  for (std::size_t i = 0; i < full.size(); ++i) blocks.push_back({full[i], sparse[i]});
  return blocks;
}

// modeling_lfm2.py: the first third of a projection steers what enters the convolution, the second
// gates what leaves it.
Architecture read_lfm2_like(ConfigObject& config, DecoderFacts facts) {
  facts.tied = config.flag_or({"tie_embedding"}, true);
  const Sizes sizes = read_sizes(config, facts);
  config.know({"conv_dim", "conv_dim_out", "block_dim"});
  Architecture a = read_frame(config, facts, sizes);
  const std::string layer(facts.layer);
  const bool bias = config.flag_or({"conv_bias"}, false);
  const StateSpace convolution{.recurrence = Recurrence::input_gate,
                               .inner = sizes.hidden,
                               .pieces = sizes.hidden,
                               .projections = {{.names = weights(layer + "conv.in_proj", bias),
                                                .slices = {{Stream::step, sizes.hidden},
                                                           {Stream::gate, sizes.hidden},
                                                           {Stream::mixed, sizes.hidden}}}},
                               .convolution = weights(layer + "conv.conv", bias),
                               .kernel = config.size_or({"conv_L_cache"}, 3, 1024),
                               .after_convolution = Nonlinearity::none,
                               .gate = Nonlinearity::none,
                               .output = weights(layer + "conv.out_proj", bias)};
  const Attention attention = read_attention(config, facts, sizes);
  const std::int64_t width =
      facts.moe ? config.size({"intermediate_size"}, kMostWidth) : read_lfm2_width(config);
  const Mixer mlp = make_mlp(facts.mlp, layer, width, "silu", false);
  const Mixer moe =
      facts.moe ? Mixer(make_moe(*facts.moe, layer, read_moe_sizes(config, *facts.moe), "silu"))
                : mlp;
  const auto dense =
      facts.moe ? config.count_or({"num_dense_layers"}, 2, kMostLayers) : sizes.layers;
  std::vector<bool> sparse(static_cast<std::size_t>(sizes.layers));
  for (std::size_t i = 0; i < sparse.size(); ++i) sparse[i] = static_cast<std::int64_t>(i) >= dense;
  const std::vector<bool> full = read_lfm2_layers(config, sizes.layers);
  add_blocks<Lfm2Block>(a, join_lfm2_blocks(full, sparse), [&](const Lfm2Block& block) {
    return two_sublayers(norm(kRms, layer + "operator_norm"),
                         block.full ? Mixer(attention) : Mixer(convolution),
                         norm(kRms, layer + "ffn_norm"), block.sparse ? moe : mlp);
  });
  return a;
}

Architecture read_lfm2(ConfigObject& config) { return read_lfm2_like(config, kLfm2); }

// modeling_lfm2_moe.py of the library, version 5.23.0.
Architecture read_lfm2_moe(ConfigObject& config) {
  DecoderFacts facts = kLfm2;
  facts.family = "lfm2_moe";
  facts.moe = kLfm2Experts;
  if (!config.flag_or({"use_expert_bias"}, true)) facts.moe->correction = "";
  return read_lfm2_like(config, facts);
}

constexpr std::array kConvolutionFamilies{
    ModelFamily{"lfm2", read_lfm2},
    ModelFamily{"lfm2_moe", read_lfm2_moe},
};

}  // namespace

std::span<const ModelFamily> convolution_families() { return kConvolutionFamilies; }

}  // namespace placet
