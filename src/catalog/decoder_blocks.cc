// The blocks of ordinary decoders: which differ, and how each is put together.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "catalog/decoder.h"

namespace placet {
namespace {

constexpr std::int64_t kMostPredictions = 64;

// --- windows and rotation

std::int64_t read_period(ConfigObject& config, const WindowFacts& facts) {
  if (facts.period_key.empty()) return facts.period;
  // Some files spell the pattern: "LLLG" is three blocks with a window and one without.
  const Json& value = config.raw(facts.period_key);
  if (!value.is_string()) return config.count_or({facts.period_key}, facts.period, kMostLayers);
  const auto text = value.get<std::string>();
  const bool regular = !text.empty() && text.find('G') == text.size() - 1 &&
                       text.find_first_not_of("LG") == std::string::npos;
  if (!regular) config.fail(facts.period_key, "", "L for each block with a window, then G");
  return static_cast<std::int64_t>(text.size());
}

/// One entry per layer, and some files have further ones for the prediction modules.
void check_length(ConfigObject& config, std::string_view key, std::size_t entries,
                  std::int64_t layers) {
  if (entries == static_cast<std::size_t>(layers)) return;
  const Json& modules = config.raw("num_nextn_predict_layers");
  if (modules.is_number_integer() && Json(static_cast<std::int64_t>(entries) - layers) == modules) {
    return;
  }
  config.fail(
      key, "has " + std::to_string(entries) + " entries for " + std::to_string(layers) + " layers",
      "one entry per layer");
}

/// The spelling of a kind of layer in `layer_types`.
bool is_windowed(const ConfigObject& config, const std::string& kind) {
  if (kind == "sliding_attention" || kind == "chunked_attention") return true;
  // A key selector chooses from all keys.
  constexpr std::array<std::string_view, 4> kFull{"full_attention", "indexed_attention",
                                                  "deepseek_sparse_attention", "minimax_m3_sparse"};
  if (std::ranges::find(kFull, kind) != kFull.end()) return false;
  config.fail("layer_types", "holds '" + kind + "'",
              "full_attention, sliding_attention or chunked_attention");
}

/// A family without windows may still list its layers, all of them full.
void refuse_windows(const ConfigObject& config, const std::vector<std::string>& types) {
  for (const std::string& kind : types) {
    if (is_windowed(config, kind)) {
      config.fail("layer_types", "asks for windows, which this family does not have");
    }
  }
}

/// Which blocks have a window: as listed, else by the family's rule.
std::vector<bool> windowed_blocks(ConfigObject& config, const WindowFacts& facts,
                                  const std::vector<std::string>& types, std::size_t layers) {
  const std::int64_t period = read_period(config, facts);
  const std::int64_t first =
      facts.first_key.empty() ? 0 : config.count_or({facts.first_key}, 0, kMostLayers);
  std::vector<bool> windowed(layers);
  for (std::size_t i = 0; i < layers; ++i) {
    const auto number = static_cast<std::int64_t>(i);
    windowed[i] = types.empty() ? number >= first && (period == 0 || (number + 1) % period != 0)
                                : is_windowed(config, types[i]);
  }
  return windowed;
}

void read_windows(ConfigObject& config, const WindowFacts& facts, std::vector<LayerTraits>& all) {
  std::vector<std::string> types =
      config.words("layer_types", kMostLayers).value_or(std::vector<std::string>{});
  if (!types.empty()) {
    check_length(config, "layer_types", types.size(), static_cast<std::int64_t>(all.size()));
    types.resize(all.size());
  }
  if (facts.size_key.empty()) return refuse_windows(config, types);
  const bool on = read_switch(config, facts.on);
  const std::int64_t size = config.count_or({facts.size_key}, facts.size, kMostRows);
  const std::vector<bool> windowed = windowed_blocks(config, facts, types, all.size());
  if (!on || size == 0) return;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].window = windowed[i] ? size : 0;
    if (!windowed[i] && facts.unrotated_without) all[i].rotated = false;
  }
}

void read_rotation(ConfigObject& config, const WindowFacts& facts, std::vector<LayerTraits>& all) {
  if (facts.unrotated_period == 0) return;
  const auto layers = static_cast<std::int64_t>(all.size());
  const std::int64_t period =
      config.count_or({"no_rope_layer_interval"}, facts.unrotated_period, kMostLayers);
  const std::vector<std::int64_t> rotated =
      config.numbers("no_rope_layers", kMostLayers).value_or(std::vector<std::int64_t>{});
  if (!rotated.empty()) check_length(config, "no_rope_layers", rotated.size(), layers);
  for (std::int64_t i = 0; i < layers; ++i) {
    LayerTraits& layer = all[static_cast<std::size_t>(i)];
    layer.rotated = rotated.empty() ? period == 0 || (i + 1) % period != 0
                                    : rotated[static_cast<std::size_t>(i)] != 0;
    if (!layer.rotated) layer.window = 0;
  }
}

// --- mixtures of experts

void mark_after_dense(ConfigObject& config, std::int64_t fallback, std::vector<LayerTraits>& all) {
  const auto layers = static_cast<std::int64_t>(all.size());
  const std::int64_t dense =
      config.count_or({"first_k_dense_replace", "num_dense_layers"}, fallback, kMostLayers);
  if (config.raw("moe_layer_freq").is_array()) {
    const auto flags = config.numbers("moe_layer_freq", kMostLayers);
    check_length(config, "moe_layer_freq", flags->size(), layers);
    for (std::size_t i = 0; i < all.size(); ++i) all[i].sparse = (*flags)[i] != 0;
    return;
  }
  const std::int64_t every = config.size_or({"moe_layer_freq"}, 1, kMostLayers);
  for (std::int64_t i = dense; i < layers; ++i) {
    all[static_cast<std::size_t>(i)].sparse = i % every == 0;
  }
}

void mark_stepped(ConfigObject& config, std::vector<LayerTraits>& all) {
  const auto layers = static_cast<std::int64_t>(all.size());
  const std::int64_t step = config.size_or({"decoder_sparse_step"}, 1, kMostLayers);
  for (std::int64_t i = 0; i < layers; ++i) {
    all[static_cast<std::size_t>(i)].sparse = (i + 1) % step == 0;
  }
  const auto dense = config.numbers("mlp_only_layers", kMostLayers);
  if (!dense) return;
  for (const std::int64_t i : *dense) {
    if (i < 0 || i >= layers) {
      config.fail("mlp_only_layers",
                  "names layer " + std::to_string(i) + " of " + std::to_string(layers));
    }
    all[static_cast<std::size_t>(i)].sparse = false;
  }
}

void mark_ranged(ConfigObject& config, std::int64_t fallback, std::vector<LayerTraits>& all) {
  const auto layers = static_cast<std::int64_t>(all.size());
  const std::int64_t start = config.count_or({"moe_layer_start_index"}, fallback, kMostLayers);
  const std::int64_t interval = config.size_or({"moe_layer_interval"}, 1, kMostLayers);
  const bool to_the_end = config.raw("moe_layer_end_index") == Json(-1);
  const std::int64_t end =
      to_the_end ? layers - 1 : config.count_or({"moe_layer_end_index"}, layers - 1, kMostLayers);
  for (std::int64_t i = start; i <= std::min(end, layers - 1); ++i) {
    all[static_cast<std::size_t>(i)].sparse = (i + 1) % interval == 0;
  }
}

/// Newer files list the mixtures in place of every other rule.
void mark_listed(ConfigObject& config, std::vector<LayerTraits>& all) {
  const auto types = config.words("mlp_layer_types", kMostLayers);
  check_length(config, "mlp_layer_types", types->size(), static_cast<std::int64_t>(all.size()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& type = (*types)[i];
    all[i].sparse = type == "sparse";
    if (!all[i].sparse && type != "dense") {
      config.fail("mlp_layer_types", "holds '" + type + "'", "dense or sparse");
    }
  }
  config.know({"first_k_dense_replace", "moe_layer_freq", "decoder_sparse_step", "mlp_only_layers",
               "num_dense_layers"});
}

void mark_sparse(ConfigObject& config, const MoeFacts& facts, std::vector<LayerTraits>& all) {
  if (config.has("mlp_layer_types")) return mark_listed(config, all);
  switch (facts.layers) {
    case MoeFacts::Layers::all:
      for (LayerTraits& layer : all) layer.sparse = true;
      return;
    case MoeFacts::Layers::after_dense:
      return mark_after_dense(config, facts.dense_fallback, all);
    case MoeFacts::Layers::stepped:
      return mark_stepped(config, all);
    case MoeFacts::Layers::ranged:
      return mark_ranged(config, facts.dense_fallback, all);
  }
}

// --- blocks

}  // namespace

Attention attention_of(const DecoderParts& parts, const LayerTraits& traits) {
  const AttentionFacts& facts = parts.facts->attention;
  const bool other = parts.other && (traits.window > 0) == facts.other->windowed;
  Attention attention = other ? *parts.other : parts.attention;
  attention.window = traits.window;
  if (!traits.rotated) attention.rotary_size = 0;
  if (!traits.selects && attention.selector) {
    attention.window = attention.selector->keys;
    attention.selector.reset();
  }
  return attention;
}

BlockShape make_block(const DecoderParts& parts, const LayerTraits& traits) {
  const DecoderFacts& f = *parts.facts;
  const auto norm_named = [&f](std::string_view name) {
    return name.empty() ? Norm{} : norm(f.norm, std::string(f.layer) + std::string(name));
  };
  Branch first{.norm = norm_named(f.attention_norm),
               .mixer = attention_of(parts, traits),
               .norm_after = norm_named(f.attention_norm_after),
               .dropout = parts.dropout};
  Branch second{.norm = norm_named(f.mlp_norm),
                .norm_after = norm_named(f.mlp_norm_after),
                .dropout = parts.dropout};
  if (traits.sparse) {
    second.mixer = *parts.moe;
  } else {
    second.mixer = *parts.mlp;
  }
  if (!parts.parallel) return {Sublayer{.branches = {first}}, Sublayer{.branches = {second}}};
  if (f.parallel_norm) {
    second.input = Branch::Input::same;
    second.norm = {};
  }
  return {Sublayer{.branches = {first, second}}};
}

namespace {

/// Sinks and sizes that blocks of one kind have and others do not.
void tell_apart(ConfigObject& config, const DecoderFacts& facts, const Sizes& sizes,
                DecoderParts& parts) {
  const AttentionFacts& f = facts.attention;
  if (!f.other) return;
  parts.other = read_other_attention(config, facts, sizes, parts.attention);
  const bool windowed = read_switch(config, f.sinks_windowed);
  const bool full = read_switch(config, f.sinks_full);
  if (!(f.other->windowed ? windowed : full)) parts.other->sinks = "";
  if (!(f.other->windowed ? full : windowed)) parts.attention.sinks = "";
}

}  // namespace

DecoderParts read_parts(ConfigObject& config, const DecoderFacts& facts, const Sizes& sizes,
                        const std::vector<LayerTraits>& traits) {
  DecoderParts parts{.facts = &facts, .attention = read_attention(config, facts, sizes)};
  tell_apart(config, facts, sizes, parts);
  const std::string activation = read_activation(config, "silu");
  const std::string layer(facts.layer);
  const bool any_sparse = std::ranges::any_of(traits, &LayerTraits::sparse);
  const bool any_dense = !std::ranges::all_of(traits, &LayerTraits::sparse);
  const bool bias = read_switch(config, facts.mlp.bias);
  if (any_dense) {
    const std::int64_t width = config.size({facts.mlp.width}, kMostWidth);
    parts.mlp = make_mlp(facts.mlp, layer, width, activation, bias);
  } else {
    config.know({facts.mlp.width});
  }
  // Where every block is dense, what the file says of mixtures is still read, and not used.
  if (any_sparse || (facts.moe && config.has("num_experts_per_tok"))) {
    const MoeSizes moe = read_moe_sizes(config, *facts.moe);
    if (any_sparse) parts.moe = make_moe(*facts.moe, layer, moe, activation);
  }
  parts.dropout = read_dropout(config, {"resid_pdrop", "residual_dropout", "hidden_dropout"},
                               facts.residual_dropout);
  parts.parallel = read_switch(config, facts.parallel);
  return parts;
}

void add_predictions(ConfigObject& config, const DecoderParts& parts, const LayerTraits& last,
                     Architecture& a) {
  const DecoderFacts& facts = *parts.facts;
  if (facts.predictions == DecoderFacts::Predictions::none) return;
  const std::int64_t modules = config.count_or({"num_nextn_predict_layers"}, 0, kMostPredictions);
  if (modules > 0 && facts.predictions == DecoderFacts::Predictions::left_out) {
    a.notes.push_back("num_nextn_predict_layers: the prediction modules are left out");
    return;
  }
  const std::string layer(facts.layer);
  const auto blocks = static_cast<std::int64_t>(a.order.size());
  LayerTraits traits = last;
  traits.selects = true;  // a module has no block before it whose choice it could take
  for (std::int64_t i = 0; i < modules; ++i) {
    a.predictions.push_back({.number = blocks + i,
                             .embedding_norm = norm(facts.norm, layer + "enorm"),
                             .stream_norm = norm(facts.norm, layer + "hnorm"),
                             .projection = weights(layer + "eh_proj", false),
                             .block = make_block(parts, traits),
                             .final_norm = norm(facts.norm, layer + "shared_head.norm"),
                             .tokens = layer + "embed_tokens.weight",
                             .output = layer + "shared_head.head.weight"});
  }
}

namespace {

/// Blocks whose own selector chooses: "full"; those that take the choice of one before: "shared".
void read_selecting(ConfigObject& config, std::vector<LayerTraits>& all) {
  const auto types = config.words("indexer_types", kMostLayers);
  if (!types) return;
  check_length(config, "indexer_types", types->size(), static_cast<std::int64_t>(all.size()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& type = (*types)[i];
    all[i].selects = type == "full";
    if (!all[i].selects && type != "shared") {
      config.fail("indexer_types", "holds '" + type + "'", "full or shared");
    }
  }
  if (!all.front().selects) {
    config.fail("indexer_types", "has no block before the first to take a choice from",
                "full for the first block");
  }
}

}  // namespace

std::vector<LayerTraits> read_traits(ConfigObject& config, const DecoderFacts& facts,
                                     const Sizes& sizes) {
  std::vector<LayerTraits> all(static_cast<std::size_t>(sizes.layers));
  read_windows(config, facts.attention.window, all);
  read_rotation(config, facts.attention.window, all);
  if (facts.moe) mark_sparse(config, *facts.moe, all);
  if (facts.attention.latent) read_selecting(config, all);
  return all;
}

Architecture read_decoder(ConfigObject& config, const DecoderFacts& facts) {
  const Sizes sizes = read_sizes(config, facts);
  Architecture a = read_frame(config, facts, sizes);
  const std::vector<LayerTraits> traits = read_traits(config, facts, sizes);
  const DecoderParts parts = read_parts(config, facts, sizes, traits);
  add_blocks<LayerTraits>(a, traits,
                          [&](const LayerTraits& layer) { return make_block(parts, layer); });
  add_predictions(config, parts, traits.back(), a);
  return a;
}

}  // namespace placet
