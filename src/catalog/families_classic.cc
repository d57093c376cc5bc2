// Decoders of the years before llama, each of a form of its own. Facts from the model code of the
// transformers library, version 4.57.1, unless a family says otherwise.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "catalog/families.h"

namespace placet {
namespace {

/// Fully connected layers without a gate: `up` and `down` are stems.
Mlp plain_mlp(std::int64_t width, std::string activation, Weights up, Weights down) {
  return {.width = width,
          .gated = false,
          .activation = std::move(activation),
          .up = std::move(up),
          .down = std::move(down)};
}

/// Attention with as many kv heads as `sizes` says and heads of one size; names still missing.
Attention plain_attention(const Sizes& sizes, double dropout) {
  return {.heads = sizes.heads,
          .kv_heads = sizes.kv_heads,
          .head_size = sizes.head_size,
          .value_head_size = sizes.head_size,
          .dropout = dropout};
}

void use_one_shape(Architecture& a, BlockShape shape, std::int64_t layers) {
  a.shapes = {std::move(shape)};
  a.order.assign(static_cast<std::size_t>(layers), 0);
}

BlockShape sequence(Branch first, Branch second) {
  BlockShape shape(2);
  shape[0].branches.push_back(std::move(first));
  shape[1].branches.push_back(std::move(second));
  return shape;
}

BlockShape side_by_side(Branch first, Branch second) {
  BlockShape shape(1);
  shape[0].branches.push_back(std::move(first));
  shape[0].branches.push_back(std::move(second));
  return shape;
}

std::int64_t read_inner(ConfigObject& config, Keys keys, std::int64_t hidden) {
  return config.size_or(keys, 4 * hidden, kMostWidth);
}

constexpr DecoderFacts kGpt2{.family = "gpt2",
                             .embedding = "transformer.wte.weight",
                             .final_norm = "transformer.ln_f",
                             .tied = true,
                             .norm = kLayerNorm};

/// Whether one head of keys and values serves all. The first files of StarCoder's kind call
/// themselves gpt2 and say so in a word.
bool has_one_kv_head(ConfigObject& config, WeightOrder order) {
  const std::string word = config.text_or({"attention_head_type"}, "");
  if (word == "multiquery") return true;
  if (!word.empty() && word != "multihead") {
    config.fail("attention_head_type", "", "multihead or multiquery");
  }
  return word.empty() && order == WeightOrder::out_in && config.flag_or({"multi_query"}, true);
}

/// GPT-2, and with `multi_query` StarCoder's variant of it.
Architecture read_gpt2_like(ConfigObject& config, const DecoderFacts& facts, WeightOrder order,
                            double dropout) {
  Sizes sizes = read_sizes(config, facts);
  if (has_one_kv_head(config, order)) sizes.kv_heads = 1;
  Architecture a = read_frame(config, facts, sizes);
  a.embedding.positions = "transformer.wpe.weight";
  a.embedding.position_rows = sizes.positions > 0 ? sizes.positions : 1024;
  a.max_sequence = a.embedding.position_rows;
  a.embedding.dropout = read_dropout(config, {"embd_pdrop"}, dropout);
  const double residual = read_dropout(config, {"resid_pdrop"}, dropout);
  const std::string h = "transformer.h.{}.";
  Attention attention = plain_attention(sizes, read_dropout(config, {"attn_pdrop"}, dropout));
  attention.layout = QkvLayout::fused;
  attention.order = order;
  attention.fused = weights(h + "attn.c_attn", true);
  attention.output = weights(h + "attn.c_proj", true);
  Mlp mlp = plain_mlp(read_inner(config, {"n_inner", "intermediate_size"}, sizes.hidden),
                      read_activation(config, "gelu_new"), weights(h + "mlp.c_fc", true),
                      weights(h + "mlp.c_proj", true));
  mlp.order = order;
  use_one_shape(
      a,
      sequence(
          {.norm = norm(kLayerNorm, h + "ln_1"),
           .mixer = std::move(attention),
           .dropout = residual},
          {.norm = norm(kLayerNorm, h + "ln_2"), .mixer = std::move(mlp), .dropout = residual}),
      sizes.layers);
  return a;
}

Architecture read_gpt2(ConfigObject& config) {
  return read_gpt2_like(config, kGpt2, WeightOrder::in_out, 0.1);
}

Architecture read_gpt_bigcode(ConfigObject& config) {
  DecoderFacts facts = kGpt2;
  facts.family = "gpt_bigcode";
  return read_gpt2_like(config, facts, WeightOrder::out_in, 0.1);
}

/// One entry of `attention_types`: a cycle of kinds and how often it repeats.
struct NeoCycle {
  std::vector<bool> local;
  std::int64_t times = 0;
};

NeoCycle read_neo_cycle(const ConfigObject& config, const Json& entry) {
  constexpr const char* kForm = R"(a list such as [[["global", "local"], 12]])";
  const bool is_pair = entry.is_array() && entry.size() == 2 && entry[0].is_array() &&
                       !entry[0].empty() && entry[1].is_number_unsigned();
  if (!is_pair) config.fail("attention_types", "", kForm);
  NeoCycle cycle{.times = static_cast<std::int64_t>(
                     std::min<std::uint64_t>(entry[1].get<std::uint64_t>(), kMostLayers))};
  for (const Json& kind : entry[0]) {
    const bool local = kind == Json("local");
    if (!local && kind != Json("global")) config.fail("attention_types", "", kForm);
    cycle.local.push_back(local);
  }
  return cycle;
}

/// `attention_types` of gpt_neo, cycle after cycle; without it, full and local blocks in turn.
std::vector<LayerTraits> read_gpt_neo_windows(ConfigObject& config, std::int64_t layers) {
  const std::int64_t window = config.size_or({"window_size"}, 256, kMostRows);
  config.know({"attention_layers"});
  std::vector<NeoCycle> cycles;
  const Json& types = config.raw("attention_types");
  if (types.is_null()) cycles.push_back({.local = {false, true}, .times = layers});
  for (const Json& entry : types) cycles.push_back(read_neo_cycle(config, entry));
  std::vector<LayerTraits> all;
  for (const NeoCycle& cycle : cycles) {
    const auto kinds = static_cast<std::int64_t>(cycle.local.size());
    const std::int64_t room = layers - static_cast<std::int64_t>(all.size());
    for (std::int64_t i = 0; i < std::min(room, cycle.times * kinds); ++i) {
      all.push_back({.window = cycle.local[static_cast<std::size_t>(i % kinds)] ? window : 0});
    }
  }
  if (static_cast<std::int64_t>(all.size()) != layers) {
    config.fail("attention_types", "describes fewer layers than num_layers");
  }
  return all;
}

Architecture read_gpt_neo(ConfigObject& config) {
  DecoderFacts facts = kGpt2;
  facts.family = "gpt_neo";
  const Sizes sizes = read_sizes(config, facts);
  Architecture a = read_frame(config, facts, sizes);
  a.embedding.positions = "transformer.wpe.weight";
  a.embedding.position_rows = sizes.positions > 0 ? sizes.positions : 2048;
  a.max_sequence = a.embedding.position_rows;
  a.embedding.dropout = read_dropout(config, {"embed_dropout"}, 0);
  const double residual = read_dropout(config, {"resid_dropout"}, 0);
  const std::string h = "transformer.h.{}.";
  Attention attention = plain_attention(sizes, read_dropout(config, {"attention_dropout"}, 0));
  attention.query = weights(h + "attn.attention.q_proj", false);
  attention.key = weights(h + "attn.attention.k_proj", false);
  attention.value = weights(h + "attn.attention.v_proj", false);
  attention.output = weights(h + "attn.attention.out_proj", true);
  const Mlp mlp = plain_mlp(read_inner(config, {"intermediate_size"}, sizes.hidden),
                            read_activation(config, "gelu_new"), weights(h + "mlp.c_fc", true),
                            weights(h + "mlp.c_proj", true));
  add_blocks<LayerTraits>(
      a, read_gpt_neo_windows(config, sizes.layers), [&](const LayerTraits& layer) {
        attention.window = layer.window;
        return sequence(
            {.norm = norm(kLayerNorm, h + "ln_1"), .mixer = attention, .dropout = residual},
            {.norm = norm(kLayerNorm, h + "ln_2"), .mixer = mlp, .dropout = residual});
      });
  return a;
}

/// GPT-J and CodeGen: attention and mlp side by side after one norm.
Architecture read_gptj_like(ConfigObject& config, DecoderFacts facts, QkvLayout layout) {
  facts.tied = false;
  facts.output_bias.fallback = true;
  const Sizes sizes = read_sizes(config, facts);
  Architecture a = read_frame(config, facts, sizes);
  const double residual = read_dropout(config, {"resid_pdrop"}, 0);
  const std::string h = "transformer.h.{}.";
  Attention attention = plain_attention(sizes, read_dropout(config, {"attn_pdrop"}, 0));
  attention.rotary_size = config.count_or({"rotary_dim"}, sizes.head_size, sizes.head_size);
  attention.layout = layout;
  if (layout == QkvLayout::fused) {
    attention.fused = weights(h + "attn.qkv_proj", false);
  } else {
    attention.query = weights(h + "attn.q_proj", false);
    attention.key = weights(h + "attn.k_proj", false);
    attention.value = weights(h + "attn.v_proj", false);
  }
  attention.output = weights(h + "attn.out_proj", false);
  Mlp mlp =
      plain_mlp(read_inner(config, {"n_inner"}, sizes.hidden), read_activation(config, "gelu_new"),
                weights(h + "mlp.fc_in", true), weights(h + "mlp.fc_out", true));
  use_one_shape(
      a,
      side_by_side({.norm = norm(kLayerNorm, h + "ln_1"),
                    .mixer = std::move(attention),
                    .dropout = residual},
                   {.input = Branch::Input::same, .mixer = std::move(mlp), .dropout = residual}),
      sizes.layers);
  return a;
}

Architecture read_gptj(ConfigObject& config) {
  DecoderFacts facts = kGpt2;
  facts.family = "gptj";
  return read_gptj_like(config, facts, QkvLayout::separate);
}

Architecture read_codegen(ConfigObject& config) {
  DecoderFacts facts = kGpt2;
  facts.family = "codegen";
  return read_gptj_like(config, facts, QkvLayout::fused);
}

Architecture read_bloom(ConfigObject& config) {
  DecoderFacts facts = kGpt2;
  facts.family = "bloom";
  facts.embedding = "transformer.word_embeddings.weight";
  Sizes sizes = read_sizes(config, facts);
  sizes.positions = 0;  // linear biases: no limit, whatever seq_length says
  config.know({"masked_softmax_fusion", "offset_alibi", "skip_bias_add", "skip_bias_add_qkv",
               "slow_but_exact", "apply_residual_connection_post_layernorm",
               "bias_dropout_fusion"});
  Architecture a = read_frame(config, facts, sizes);
  a.embedding.norm = norm(kLayerNorm, "transformer.word_embeddings_layernorm");
  const double residual = read_dropout(config, {"hidden_dropout"}, 0);
  const std::string h = "transformer.h.{}.";
  Attention attention = plain_attention(sizes, read_dropout(config, {"attention_dropout"}, 0));
  attention.layout = QkvLayout::fused;
  attention.fused = weights(h + "self_attention.query_key_value", true);
  attention.output = weights(h + "self_attention.dense", true);
  Mlp mlp =
      plain_mlp(read_inner(config, {"n_inner"}, sizes.hidden), "gelu",
                weights(h + "mlp.dense_h_to_4h", true), weights(h + "mlp.dense_4h_to_h", true));
  use_one_shape(a,
                sequence({.norm = norm(kLayerNorm, h + "input_layernorm"),
                          .mixer = std::move(attention),
                          .dropout = residual},
                         {.norm = norm(kLayerNorm, h + "post_attention_layernorm"),
                          .mixer = std::move(mlp),
                          .dropout = residual}),
                sizes.layers);
  return a;
}

/// What of OPT its smallest-but-one model does differently: norms after the residual add, and an
/// embedding narrower than the stream.
Architecture read_opt(ConfigObject& config) {
  const std::string d = "model.decoder.";
  DecoderFacts facts{.family = "opt",
                     .embedding = "model.decoder.embed_tokens.weight",
                     .final_norm = "",
                     .tied = true,
                     .norm = kLayerNorm};
  facts.norm.weight = facts.norm.bias = config.flag_or({"layer_norm_elementwise_affine"}, true);
  const Sizes sizes = read_sizes(config, facts);
  Architecture a = read_frame(config, facts, sizes);
  const bool before = config.flag_or({"do_layer_norm_before"}, true);
  const bool bias = config.flag_or({"enable_bias"}, true);
  if (before && !config.flag_or({"_remove_final_layer_norm"}, false)) {
    a.head.norm = norm(facts.norm, d + "final_layer_norm");
  }
  a.embedding.positions = d + "embed_positions.weight";
  a.max_sequence = sizes.positions > 0 ? sizes.positions : 2048;
  a.embedding.position_rows = a.max_sequence + 2;  // two rows in front stay for padding
  a.embedding.width = config.size_or({"word_embed_proj_dim"}, sizes.hidden, kMostWidth);
  if (a.embedding.width != sizes.hidden) {
    a.embedding.projection = weights(d + "project_in", false);
    a.head.projection = weights(d + "project_out", false);
  }
  const double residual = read_dropout(config, {"dropout"}, 0.1);
  const std::string h = d + "layers.{}.";
  Attention attention = plain_attention(sizes, read_dropout(config, {"attention_dropout"}, 0));
  attention.query = weights(h + "self_attn.q_proj", bias);
  attention.key = weights(h + "self_attn.k_proj", bias);
  attention.value = weights(h + "self_attn.v_proj", bias);
  attention.output = weights(h + "self_attn.out_proj", bias);
  Mlp mlp = plain_mlp(config.size({"ffn_dim"}, kMostWidth), read_activation(config, "relu"),
                      weights(h + "fc1", bias), weights(h + "fc2", bias));
  const Norm first = norm(facts.norm, h + "self_attn_layer_norm");
  const Norm second = norm(facts.norm, h + "final_layer_norm");
  BlockShape shape = sequence({.mixer = std::move(attention), .dropout = residual},
                              {.mixer = std::move(mlp), .dropout = residual});
  (before ? shape[0].branches[0].norm : shape[0].norm_after) = first;
  (before ? shape[1].branches[0].norm : shape[1].norm_after) = second;
  use_one_shape(a, std::move(shape), sizes.layers);
  return a;
}

/// How falcon's attention and mlp stand to each other.
BlockShape falcon_block(ConfigObject& config, const std::string& h, bool is_new, Branch attention,
                        Branch mlp) {
  const auto named = [&h](const char* name) { return norm(kLayerNorm, h + name); };
  const bool parallel = config.flag_or({"parallel_attn"}, true);
  if (parallel && is_new && config.count_or({"num_ln_in_parallel_attn"}, 2, 2) == 2) {
    attention.norm = named("ln_attn");
    mlp.norm = named("ln_mlp");
    return side_by_side(std::move(attention), std::move(mlp));
  }
  attention.norm = named("input_layernorm");
  if (parallel) {
    mlp.input = Branch::Input::same;
    return side_by_side(std::move(attention), std::move(mlp));
  }
  mlp.norm = named("post_attention_layernorm");
  return sequence(std::move(attention), std::move(mlp));
}

Architecture read_falcon_like(ConfigObject& config, bool is_new) {
  DecoderFacts facts = kGpt2;
  facts.family = "falcon";
  facts.embedding = "transformer.word_embeddings.weight";
  Sizes sizes = read_sizes(config, facts);
  const bool multi_query = config.flag_or({"multi_query"}, true);
  config.know({"num_kv_heads", "n_head_kv", "parallel_attn", "num_ln_in_parallel_attn",
               "apply_residual_connection_post_layernorm"});
  if (is_new) {
    sizes.kv_heads = config.size_or({"num_kv_heads", "n_head_kv"}, sizes.heads, kMostHeads);
  } else {
    sizes.kv_heads = multi_query ? 1 : sizes.heads;
  }
  if (sizes.heads % sizes.kv_heads != 0) {
    config.fail("num_kv_heads", "does not divide the attention heads", "a divisor");
  }
  Architecture a = read_frame(config, facts, sizes);
  if (a.max_sequence == 0) a.max_sequence = 2048;
  const bool bias = config.flag_or({"bias"}, false);
  const double residual = read_dropout(config, {"hidden_dropout"}, 0);
  const std::string h = "transformer.h.{}.";
  Attention attention = plain_attention(sizes, read_dropout(config, {"attention_dropout"}, 0));
  attention.rotary_size = config.flag_or({"alibi"}, false) ? 0 : sizes.head_size;
  attention.layout = QkvLayout::fused;
  attention.fused = weights(h + "self_attention.query_key_value", bias);
  attention.output = weights(h + "self_attention.dense", bias);
  Mlp mlp = plain_mlp(read_inner(config, {"ffn_hidden_size"}, sizes.hidden),
                      read_activation(config, "gelu"), weights(h + "mlp.dense_h_to_4h", bias),
                      weights(h + "mlp.dense_4h_to_h", bias));
  use_one_shape(
      a,
      falcon_block(config, h, is_new, {.mixer = std::move(attention), .dropout = residual},
                   {.mixer = std::move(mlp), .dropout = residual}),
      sizes.layers);
  return a;
}

Architecture read_falcon(ConfigObject& config) {
  return read_falcon_like(config, config.flag_or({"new_decoder_architecture"}, false));
}

// The names under which falcon-40b and falcon-7b were first published.
Architecture read_refined_web(ConfigObject& config) { return read_falcon_like(config, true); }
Architecture read_refined_web_model(ConfigObject& config) {
  return read_falcon_like(config, false);
}

constexpr std::array kClassicFamilies{
    ModelFamily{"gpt2", read_gpt2},
    ModelFamily{"gpt_bigcode", read_gpt_bigcode},
    ModelFamily{"gpt_neo", read_gpt_neo},
    ModelFamily{"gptj", read_gptj},
    ModelFamily{"codegen", read_codegen},
    ModelFamily{"bloom", read_bloom},
    ModelFamily{"opt", read_opt},
    ModelFamily{"falcon", read_falcon},
    ModelFamily{"RefinedWeb", read_refined_web},
    ModelFamily{"RefinedWebModel", read_refined_web_model},
};

}  // namespace

std::span<const ModelFamily> classic_families() { return kClassicFamilies; }

}  // namespace placet
