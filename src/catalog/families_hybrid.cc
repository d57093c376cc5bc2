// Decoders with recurrent layers: state spaces, gated delta nets, linear attention. Facts from the
// model code of the transformers library, version 4.57.1, unless a family says otherwise.
#include <array>
#include <string>
#include <utility>

#include "catalog/families.h"

namespace placet {
namespace {

using Stream = StateSpace::Stream;

constexpr std::int64_t kMostTaps = 1024;

/// Sizes of a state space whose steps are per head (second generation).
struct HeadScan {
  std::string prefix;  // "model.layers.{}.mamba."
  std::int64_t inner = 0;
  std::int64_t heads = 0;
  std::int64_t groups = 0;
  std::int64_t state = 0;
  std::int64_t kernel = 0;
  bool convolution_bias = true;
  bool input_bias = false;
  bool output_bias = false;
  bool norm = true;
  StateSpace::NormSpan span = StateSpace::NormSpan::full;
};

StateSpace make_head_scan(const ConfigObject& config, const HeadScan& s) {
  config.require_multiple("n_groups", s.heads, s.groups);
  config.require_multiple("n_heads", s.inner, s.heads);
  const std::int64_t mixed = s.inner + 2 * s.groups * s.state;
  return {.recurrence = Recurrence::head_scan,
          .inner = s.inner,
          .pieces = s.groups,
          .projections = {{.names = weights(s.prefix + "in_proj", s.input_bias),
                           .slices = {{Stream::gate, s.inner},
                                      {Stream::mixed, mixed},
                                      {Stream::step, s.heads}}}},
          .convolution = weights(s.prefix + "conv1d", s.convolution_bias),
          .kernel = s.kernel,
          .constants = {{.name = s.prefix + "dt_bias", .channels = s.heads},
                        {.name = s.prefix + "A_log", .channels = s.heads},
                        {.name = s.prefix + "D", .channels = s.heads}},
          .norm = s.norm ? norm(kRms, s.prefix + "norm") : Norm{},
          .norm_span = s.span,
          .output = weights(s.prefix + "out_proj", s.output_bias)};
}

/// Keys of the families that name them mamba_*.
HeadScan read_head_scan(ConfigObject& config, const Sizes& sizes, const std::string& prefix) {
  config.know({"mamba_d_head", "mamba_chunk_size", "mamba_expand"});
  HeadScan s{.prefix = prefix,
             .inner = sizes.hidden * config.size_or({"mamba_expand"}, 2, kMostHeads),
             .heads = config.size_or({"mamba_n_heads"}, 128, kMostHeads),
             .groups = config.size_or({"mamba_n_groups"}, 1, kMostHeads),
             .state = config.size_or({"mamba_d_state"}, 256, kMostWidth),
             .kernel = config.size_or({"mamba_d_conv"}, 4, kMostTaps),
             .convolution_bias = config.flag_or({"mamba_conv_bias"}, true)};
  s.input_bias = s.output_bias = config.flag_or({"mamba_proj_bias"}, false);
  return s;
}

/// A state space whose steps are per channel (first generation), with the names that the families
/// of that time share. `rank` 0 is what "auto" says: hidden / 16, rounded up.
struct ChannelScan {
  std::string prefix;
  std::int64_t hidden = 0;
  std::int64_t inner = 0;
  std::int64_t state = 0;
  std::int64_t rank = 0;
  std::int64_t kernel = 0;
  bool convolution_bias = true;
  bool projection_bias = false;
  NormKind step_norms = NormKind::none;
  bool named_norms = false;  // whether those norms have weights
};

StateSpace make_channel_scan(const ChannelScan& s) {
  const auto step_norm = [&s](const char* name) {
    return norm({.kind = s.step_norms, .weight = s.named_norms}, s.prefix + name);
  };
  return {.recurrence = Recurrence::selective_scan,
          .inner = s.inner,
          .pieces = s.inner,
          .projections = {{.names = weights(s.prefix + "in_proj", s.projection_bias),
                           .slices = {{Stream::mixed, s.inner}, {Stream::gate, s.inner}}}},
          .convolution = weights(s.prefix + "conv1d", s.convolution_bias),
          .kernel = s.kernel,
          .selection = StateSpace::Selection{.rank = s.rank > 0 ? s.rank : (s.hidden + 15) / 16,
                                             .state = s.state,
                                             .down = weights(s.prefix + "x_proj", false),
                                             .up = weights(s.prefix + "dt_proj", true),
                                             .rank_norm = step_norm("dt_layernorm"),
                                             .b_norm = step_norm("b_layernorm"),
                                             .c_norm = step_norm("c_layernorm")},
          .constants = {{.name = s.prefix + "A_log", .channels = s.inner, .per_channel = s.state},
                        {.name = s.prefix + "D", .channels = s.inner}},
          .output = weights(s.prefix + "out_proj", s.projection_bias)};
}

std::int64_t read_rank(ConfigObject& config, std::string_view key) {
  if (config.raw(key) == Json("auto")) return 0;
  return config.count_or({key}, 0, kMostWidth);
}

// --- nothing but state spaces

constexpr DecoderFacts kBackbone{.embedding = "backbone.embeddings.weight",
                                 .final_norm = "backbone.norm_f"};

void know_step_keys(ConfigObject& config) {
  config.know({"time_step_scale", "time_step_min", "time_step_max", "time_step_init_scheme",
               "time_step_floor", "time_step_limit", "use_mambapy", "use_falcon_mambapy",
               "mixer_rms_eps", "chunk_size", "intermediate_size", "num_heads", "rms_norm",
               "residual_in_fp32"});
}

Architecture read_mamba_like(ConfigObject& config, std::string_view family, NormKind step_norms,
                             bool tied) {
  DecoderFacts facts = kBackbone;
  facts.family = family;
  facts.tied = tied;
  know_step_keys(config);
  const Sizes sizes = read_stream_sizes(config);
  Architecture a = read_frame(config, facts, sizes);
  read_activation(config, "silu");
  const std::string layer = "backbone.layers.{}.";
  // Where the two contradict each other, as in the published falcon-mamba, the width wins.
  const std::int64_t expanded = sizes.hidden * config.size_or({"expand"}, 2, kMostHeads);
  const ChannelScan scan{
      .prefix = layer + "mixer.",
      .hidden = sizes.hidden,
      .inner = config.size_or({"intermediate_size", "d_inner"}, expanded, kMostWidth),
      .state = config.size_or({"state_size"}, 16, kMostWidth),
      .rank = read_rank(config, "time_step_rank"),
      .kernel = config.size_or({"conv_kernel"}, 4, kMostTaps),
      .convolution_bias = config.flag_or({"use_conv_bias"}, true),
      .projection_bias = config.flag_or({"use_bias"}, false),
      .step_norms = step_norms};
  a.shapes.push_back({Sublayer{
      .branches = {{.norm = norm(kRms, layer + "norm"), .mixer = make_channel_scan(scan)}}}});
  a.order.assign(static_cast<std::size_t>(sizes.layers), 0);
  return a;
}

Architecture read_mamba(ConfigObject& config) {
  return read_mamba_like(config, "mamba", NormKind::none, true);
}

// Its norms of steps, B and C have no weights.
Architecture read_falcon_mamba(ConfigObject& config) {
  return read_mamba_like(config, "falcon_mamba", NormKind::rms, true);
}

Architecture read_mamba2(ConfigObject& config) {
  DecoderFacts facts = kBackbone;
  facts.family = "mamba2";
  know_step_keys(config);
  config.know({"time_step_rank", "norm_before_gate"});
  const Sizes sizes = read_stream_sizes(config);
  Architecture a = read_frame(config, facts, sizes);
  read_activation(config, "silu");
  const std::string layer = "backbone.layers.{}.";
  HeadScan scan{.prefix = layer + "mixer.",
                .inner = sizes.hidden * config.size_or({"expand"}, 2, kMostHeads),
                .heads = config.size_or({"num_heads"}, 128, kMostHeads),
                .groups = config.size_or({"n_groups"}, 8, kMostHeads),
                .state = config.size_or({"state_size"}, 128, kMostWidth),
                .kernel = config.size_or({"conv_kernel"}, 4, kMostTaps),
                .convolution_bias = config.flag_or({"use_conv_bias"}, true)};
  scan.input_bias = scan.output_bias = config.flag_or({"use_bias"}, false);
  if (config.size_or({"head_dim"}, 64, kMostWidth) * scan.heads != scan.inner) {
    config.fail("head_dim", "times num_heads is not expand times hidden_size");
  }
  a.shapes.push_back({Sublayer{
      .branches = {{.norm = norm(kRms, layer + "norm"), .mixer = make_head_scan(config, scan)}}}});
  a.order.assign(static_cast<std::size_t>(sizes.layers), 0);
  return a;
}

// --- attention and state spaces in turn

/// A block that mixes tokens with attention or a state space, then an mlp or a mixture.
struct Kind {
  bool attention = false;
  bool sparse = false;
  auto operator<=>(const Kind&) const = default;
};

constexpr DecoderFacts kJamba{.family = "jamba",
                              .final_norm = "model.final_layernorm",
                              .attention = {.bias = kNever, .kv_heads = 8, .rotary_fraction = 0},
                              .mlp = {.prefix = "feed_forward.", .bias = kNever},
                              .moe = MoeFacts{.prefix = "feed_forward.", .router = "router"}};

Architecture read_jamba(ConfigObject& config) {
  const Sizes sizes = read_sizes(config, kJamba);
  config.know({"sliding_window", "mamba_inner_layernorms"});
  Architecture a = read_frame(config, kJamba, sizes);
  const std::string activation = read_activation(config, "silu");
  const Attention attention = read_attention(config, kJamba, sizes);
  const std::string layer(kJamba.layer);
  const MoeSizes moe = read_moe_sizes(config, *kJamba.moe);
  const StateSpace scan =
      make_channel_scan({.prefix = layer + "mamba.",
                         .hidden = sizes.hidden,
                         .inner = sizes.hidden * config.size_or({"mamba_expand"}, 2, kMostHeads),
                         .state = config.size_or({"mamba_d_state"}, 16, kMostWidth),
                         .rank = read_rank(config, "mamba_dt_rank"),
                         .kernel = config.size_or({"mamba_d_conv"}, 4, kMostTaps),
                         .convolution_bias = config.flag_or({"mamba_conv_bias"}, true),
                         .projection_bias = config.flag_or({"mamba_proj_bias"}, false),
                         .step_norms = NormKind::rms,
                         .named_norms = true});
  const std::int64_t attention_period = config.size_or({"attn_layer_period"}, 8, kMostLayers);
  const std::int64_t attention_offset = config.count_or({"attn_layer_offset"}, 4, kMostLayers);
  const std::int64_t expert_period = config.size_or({"expert_layer_period"}, 2, kMostLayers);
  const std::int64_t expert_offset = config.count_or({"expert_layer_offset"}, 1, kMostLayers);
  std::vector<Kind> kinds;
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    kinds.push_back({.attention = i % attention_period == attention_offset,
                     .sparse = moe.experts > 1 && i % expert_period == expert_offset});
  }
  add_blocks<Kind>(a, kinds, [&](const Kind& kind) {
    return two_sublayers(
        norm(kRms, layer + "input_layernorm"), kind.attention ? Mixer(attention) : Mixer(scan),
        norm(kRms, layer + "pre_ff_layernorm"),
        kind.sparse ? Mixer(make_moe(*kJamba.moe, layer, moe, activation))
                    : Mixer(make_mlp(kJamba.mlp, layer, moe.width, activation, false)));
  });
  return a;
}

constexpr DecoderFacts kBamba{.family = "bamba",
                              .final_norm = "model.final_layernorm",
                              .attention = {.kv_heads = 8, .rotary_fraction = 0.5},
                              .mlp = {.prefix = "feed_forward."}};

Architecture read_bamba(ConfigObject& config) {
  const Sizes sizes = read_sizes(config, kBamba);
  config.know({"attn_rotary_emb", "z_loss_coefficient"});
  Architecture a = read_frame(config, kBamba, sizes);
  const std::string activation = read_activation(config, "silu");
  const std::string layer(kBamba.layer);
  const Attention attention = read_attention(config, kBamba, sizes);
  const StateSpace scan = make_head_scan(config, read_head_scan(config, sizes, layer + "mamba."));
  const Mlp mlp = make_mlp(kBamba.mlp, layer, config.size({"intermediate_size"}, kMostWidth),
                           activation, read_switch(config, kBamba.mlp.bias));
  std::vector<Kind> kinds(static_cast<std::size_t>(sizes.layers));
  const auto indices = config.numbers("attn_layer_indices", kMostLayers);
  for (const std::int64_t i : indices.value_or(std::vector<std::int64_t>{})) {
    if (i < 0 || i >= sizes.layers) config.fail("attn_layer_indices", "names no layer");
    kinds[static_cast<std::size_t>(i)].attention = true;
  }
  add_blocks<Kind>(a, kinds, [&](const Kind& kind) {
    return two_sublayers(norm(kRms, layer + "input_layernorm"),
                         kind.attention ? Mixer(attention) : Mixer(scan),
                         norm(kRms, layer + "pre_ff_layernorm"), mlp);
  });
  return a;
}

constexpr DecoderFacts kFalconH1{.family = "falcon_h1",
                                 .final_norm = "model.final_layernorm",
                                 .attention = {.kv_heads = 8},
                                 .mlp = {.prefix = "feed_forward."}};

/// Attention and a state space read the same input and are added.
Architecture read_falcon_h1(ConfigObject& config) {
  const Sizes sizes = read_sizes(config, kFalconH1);
  config.know({"mamba_use_mlp", "key_multiplier", "attention_out_multiplier", "ssm_multipliers",
               "attention_in_multiplier", "ssm_in_multiplier", "ssm_out_multiplier",
               "mlp_multipliers", "lm_head_multiplier", "mlp_expansion_factor"});
  Architecture a = read_frame(config, kFalconH1, sizes);
  const std::string activation = read_activation(config, "silu");
  const std::string layer(kFalconH1.layer);
  HeadScan scan = read_head_scan(config, sizes, layer + "mamba.");
  scan.inner = config.size_or({"mamba_d_ssm"}, scan.inner, kMostWidth);
  scan.norm = config.flag_or({"mamba_rms_norm"}, false);
  scan.span = StateSpace::NormSpan::per_group;
  scan.output_bias = config.flag_or({"projectors_bias"}, false);
  StateSpace state = make_head_scan(config, scan);
  state.norm_before_gate = config.flag_or({"mamba_norm_before_gate"}, true);
  Attention attention = read_attention(config, kFalconH1, sizes);
  Mlp mlp = make_mlp(kFalconH1.mlp, layer, config.size({"intermediate_size"}, kMostWidth),
                     activation, read_switch(config, kFalconH1.mlp.bias));
  Sublayer tokens{
      .branches = {{.norm = norm(kRms, layer + "input_layernorm"), .mixer = std::move(state)},
                   {.input = Branch::Input::same, .mixer = std::move(attention)}}};
  Sublayer channels{
      .branches = {{.norm = norm(kRms, layer + "pre_ff_layernorm"), .mixer = std::move(mlp)}}};
  a.shapes.push_back({std::move(tokens), std::move(channels)});
  a.order.assign(static_cast<std::size_t>(sizes.layers), 0);
  return a;
}

// --- granite: attention or state space, a mixture and a shared mlp or only that

constexpr MoeFacts kGraniteHybridExperts{
    .prefix = "",
    .router = "block_sparse_moe.router.layer",
    .storage = MoeFacts::Storage::stacked,
    .expert = {.prefix = "block_sparse_moe.",
               .down = "output_linear",
               .fused = "input_linear",
               .bias = kNever},
    .shared = MoeFacts::Shared::sized,
    .shared_key = "shared_intermediate_size",
    .shared_mlp = {
        .prefix = "shared_mlp.", .down = "output_linear", .fused = "input_linear", .bias = kNever}};

constexpr DecoderFacts kGraniteHybrid{.family = "granitemoehybrid", .mlp = {.bias = kNever}};

Mixer granite_channels(ConfigObject& config, const std::string& layer,
                       const std::string& activation) {
  if (config.count_or({"num_local_experts"}, 8, kMostExperts) > 0) {
    return make_moe(kGraniteHybridExperts, layer, read_moe_sizes(config, kGraniteHybridExperts),
                    activation);
  }
  config.know({"num_experts_per_tok", "intermediate_size"});
  return make_mlp(kGraniteHybridExperts.shared_mlp, layer,
                  config.size({"shared_intermediate_size"}, kMostWidth), activation, false);
}

Architecture read_granite_hybrid(ConfigObject& config) {
  DecoderFacts facts = kGraniteHybrid;
  const std::string positions = config.text_or({"position_embedding_type"}, "none");
  if (positions != "rope") facts.attention.rotary_fraction = 0;
  config.know({"rope_fraction", "init_method", "normalization_function"});
  const Sizes sizes = read_sizes(config, facts);
  Architecture a = read_frame(config, facts, sizes);
  const std::string activation = read_activation(config, "silu");
  const std::string layer(facts.layer);
  const Attention attention = read_attention(config, facts, sizes);
  const Mixer channels = granite_channels(config, layer, activation);
  const auto types = config.words("layer_types", kMostLayers);
  std::vector<Kind> kinds(static_cast<std::size_t>(sizes.layers));
  if (types && types->size() != kinds.size()) config.fail("layer_types", "is not one per layer");
  bool any_scan = !types;
  for (std::size_t i = 0; types && i < kinds.size(); ++i) {
    const std::string& type = (*types)[i];
    kinds[i].attention = type == "attention" || type == "full_attention";
    any_scan = any_scan || !kinds[i].attention;
    if (!kinds[i].attention && type != "mamba" && type != "linear_attention") {
      config.fail("layer_types", "holds '" + type + "'", "attention or mamba");
    }
  }
  const HeadScan scan = read_head_scan(config, sizes, layer + "mamba.");
  const StateSpace state = any_scan ? make_head_scan(config, scan) : StateSpace{};
  add_blocks<Kind>(a, kinds, [&](const Kind& kind) {
    return two_sublayers(norm(kRms, layer + "input_layernorm"),
                         kind.attention ? Mixer(attention) : Mixer(state),
                         norm(kRms, layer + "post_attention_layernorm"), channels);
  });
  return a;
}

Architecture read_granite_shared(ConfigObject& config) {
  DecoderFacts facts = kGraniteHybrid;
  facts.family = "granitemoeshared";
  facts.moe = kGraniteHybridExperts;
  return read_decoder(config, facts);
}

constexpr std::array kHybridFamilies{
    ModelFamily{"mamba", read_mamba},
    ModelFamily{"falcon_mamba", read_falcon_mamba},
    ModelFamily{"mamba2", read_mamba2},
    ModelFamily{"jamba", read_jamba},
    ModelFamily{"bamba", read_bamba},
    ModelFamily{"falcon_h1", read_falcon_h1},
    ModelFamily{"granitemoehybrid", read_granite_hybrid},
    ModelFamily{"granitemoeshared", read_granite_shared},
};

}  // namespace

std::span<const ModelFamily> hybrid_families() { return kHybridFamilies; }

}  // namespace placet
