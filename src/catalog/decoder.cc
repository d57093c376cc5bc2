#include "catalog/decoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

bool has_any(const ConfigObject& config, Keys keys) {
  return std::ranges::any_of(keys, [&](std::string_view key) { return config.has(key); });
}

Latents read_latents(ConfigObject& config, const DecoderFacts& facts, const std::string& prefix,
                     bool bias) {
  const auto rms = [&](std::string_view name) {
    return norm(facts.norm, prefix + std::string(name));
  };
  Latents latents{.query_rank = config.count_or({"q_lora_rank"}, 0, kMostWidth),
                  .key_value_rank = config.size({"kv_lora_rank"}, kMostWidth),
                  .rope_size = config.size({"qk_rope_head_dim"}, kMostWidth),
                  .query_down = weights(prefix + "q_a_proj", bias),
                  .query_norm = rms("q_a_layernorm"),
                  .key_value_down = weights(prefix + "kv_a_proj_with_mqa", bias),
                  .key_value_norm = rms("kv_a_layernorm"),
                  .key_value_up = weights(prefix + "kv_b_proj", false)};
  return latents;
}

/// A size that the file must say unless the family knows it.
std::int64_t size_or_known(ConfigObject& config, std::string_view key, std::int64_t known,
                           std::int64_t most) {
  return known > 0 ? config.size_or({key}, known, most) : config.size({key}, most);
}

std::optional<KeySelector> read_selector(ConfigObject& config, const SelectorFacts& facts,
                                         const std::string& prefix) {
  const bool mentioned = has_any(config, {"index_n_heads", "index_head_dim", "index_topk"});
  if (!mentioned && facts.heads == 0) return std::nullopt;
  const std::string stem = prefix + "indexer.";
  return KeySelector{
      .heads = size_or_known(config, "index_n_heads", facts.heads, kMostHeads),
      .head_size = size_or_known(config, "index_head_dim", facts.head_size, kMostWidth),
      .keys = size_or_known(config, "index_topk", facts.keys, kMostRows),
      .query = weights(stem + "wq_b", false),
      .key = weights(stem + "wk", false),
      .key_norm = norm({.kind = NormKind::layer, .bias = true}, stem + "k_norm"),
      .head_weights = weights(stem + "weights_proj", false)};
}

std::optional<QkNorm> read_qk_norm(ConfigObject& config, const QkNormFacts& facts,
                                   const std::string& prefix) {
  if (facts.on.key.empty() && facts.on.fallback && !config.flag_or({"use_qk_norm"}, true)) {
    config.fail("use_qk_norm", "is not described for this family unless true", "true");
  }
  if (!read_switch(config, facts.on)) return std::nullopt;
  return QkNorm{.span = facts.span,
                .query = norm(facts.norm, prefix + std::string(facts.query)),
                .key = norm(facts.norm, prefix + std::string(facts.key))};
}

std::int64_t read_head_size(ConfigObject& config, const AttentionFacts& facts, std::int64_t hidden,
                            std::int64_t heads) {
  if (config.has("head_dim")) return config.size({"head_dim"}, kMostWidth);
  config.know({"head_dim"});
  if (facts.head_size > 0 && !config.is_null("head_dim")) return facts.head_size;
  if (hidden % heads != 0) {
    config.fail(
        config.has("num_attention_heads") ? "num_attention_heads" : "n_head",
        "does not divide the hidden size " + std::to_string(hidden) + ", and there is no head_dim",
        "a divisor of the hidden size");
  }
  return hidden / heads;
}

}  // namespace

Weights weights(std::string stem, bool bias) {
  Weights names;
  if (bias) names.bias = stem + ".bias";
  names.weight = std::move(stem) + ".weight";
  return names;
}

Norm norm(const NormFacts& facts, const std::string& stem) {
  if (facts.kind == NormKind::none) return {};
  return {.kind = facts.kind,
          .names = {.weight = facts.weight ? stem + ".weight" : "",
                    .bias = facts.bias ? stem + ".bias" : ""}};
}

bool read_switch(ConfigObject& config, const Switch& choice) {
  return choice.key.empty() ? choice.fallback : config.flag_or({choice.key}, choice.fallback);
}

double read_dropout(ConfigObject& config, Keys keys, double fallback) {
  return config.number_or(keys, fallback, 0, 1);
}

namespace {

/// Whether an activation's name says that it multiplies two projections.
bool is_gate(std::string_view activation) {
  return activation == "swiglu" || activation == "geglu";
}

}  // namespace

std::string read_activation(ConfigObject& config, std::string_view fallback) {
  std::string word(fallback);
  std::string_view before;
  // The later key wins where a file has several (gemma, starcoder2), if they have the same shapes.
  for (const std::string_view key :
       {"activation", "activation_function", "hidden_act", "hidden_activation"}) {
    if (!config.has(key)) continue;
    const std::string own = config.text_or({key}, "");
    if (!before.empty() && is_gate(own) != is_gate(word)) {
      config.fail(key, "contradicts " + std::string(before) + " = \"" + word + "\"",
                  "one of the two");
    }
    word = own;
    before = key;
  }
  config.know({"activation", "activation_function", "hidden_act", "hidden_activation"});
  static const std::vector<std::string> kKnown{
      "silu",      "swish",     "swiglu",      "gelu",
      "gelu_new",  "gelu_fast", "gelu_python", "gelu_pytorch_tanh",
      "gelu_tanh", "geglu",     "relu",        "relu2",
      "tanh",      "xielu",     "quick_gelu",  "swigluoai",
      "situ"};
  if (std::ranges::find(kKnown, word) == kKnown.end()) {
    throw InputError({.where = config.place_of("hidden_act"),
                      .value = word,
                      .allowed = "an activation such as silu, gelu or relu",
                      .nearest = nearest(word, kKnown)});
  }
  return word;
}

namespace {

/// The number of layers, or, where a file only lists their kinds, the length of the list.
std::int64_t read_layers(ConfigObject& config) {
  const Keys keys{"num_hidden_layers", "n_layer", "n_layers", "num_layers"};
  if (!has_any(config, keys) && config.has("layers_block_type")) {
    const auto kinds = config.words("layers_block_type", kMostLayers);
    if (!kinds->empty()) return static_cast<std::int64_t>(kinds->size());
  }
  return config.size(keys, kMostLayers);
}

}  // namespace

Sizes read_stream_sizes(ConfigObject& config, std::int64_t vocabulary) {
  Sizes sizes;
  sizes.hidden = config.size({"hidden_size", "n_embd", "n_embed", "d_model"}, kMostWidth);
  sizes.layers = read_layers(config);
  sizes.vocabulary = vocabulary > 0 ? config.size_or({"vocab_size"}, vocabulary, kMostRows)
                                    : config.size({"vocab_size"}, kMostRows);
  // What a file calls seq_length may be the length it was trained with, shorter than its limit.
  const std::int64_t trained = config.count_or({"seq_length"}, 0, kMostRows);
  sizes.positions =
      config.size_or({"max_position_embeddings", "n_positions", "max_seq_len"}, trained, kMostRows);
  config.know({"n_ctx", "max_sequence_length", "model_max_length"});
  return sizes;
}

Sizes read_sizes(ConfigObject& config, const DecoderFacts& decoder) {
  const AttentionFacts& facts = decoder.attention;
  Sizes sizes = read_stream_sizes(config, decoder.vocabulary);
  const Keys heads{"num_attention_heads", "n_head", "n_heads", "num_heads"};
  sizes.heads = facts.heads > 0 ? config.size_or(heads, facts.heads, kMostHeads)
                                : config.size(heads, kMostHeads);
  if (facts.latent) {
    config.know({"num_key_value_heads", "head_dim", "qk_head_dim"});
    return sizes;
  }
  // A file that says null wants one per head, whatever the family's number.
  const bool known = facts.kv_heads > 0 && !config.is_null("num_key_value_heads");
  sizes.kv_heads = config.size_or({"num_key_value_heads", "n_head_kv", "num_attention_groups"},
                                  known ? facts.kv_heads : sizes.heads, kMostHeads);
  if (sizes.heads % sizes.kv_heads != 0) {
    config.fail("num_key_value_heads",
                "does not divide the " + std::to_string(sizes.heads) + " attention heads",
                "a divisor of num_attention_heads");
  }
  sizes.head_size = read_head_size(config, facts, sizes.hidden, sizes.heads);
  const double fraction = config.number_or({"partial_rotary_factor", "rotary_pct", "rope_pct"},
                                           facts.rotary_fraction, 0, 1);
  sizes.rotary_size = static_cast<std::int64_t>(static_cast<double>(sizes.head_size) * fraction);
  return sizes;
}

Attention read_attention(ConfigObject& config, const DecoderFacts& facts, const Sizes& sizes) {
  const AttentionFacts& f = facts.attention;
  const std::string prefix = std::string(facts.layer) + std::string(f.prefix);
  const bool bias = read_switch(config, f.bias);
  const bool output_bias = f.output_bias ? read_switch(config, *f.output_bias) : bias;
  const auto named = [&](std::string_view name, bool with_bias) {
    return name.empty() ? Weights{} : weights(prefix + std::string(name), with_bias);
  };
  Attention a{.heads = sizes.heads,
              .kv_heads = sizes.kv_heads,
              .head_size = sizes.head_size,
              .value_head_size = sizes.head_size,
              .output = named(f.output, output_bias),
              .rotary_size = sizes.rotary_size,
              .caps_scores = config.limit_or("attn_logit_softcapping", f.caps_scores, 1e9) > 0,
              .sinks = f.sinks.empty() ? "" : prefix + std::string(f.sinks),
              .dropout = read_dropout(config, {"attention_dropout", "attn_pdrop"},
                                      facts.attention_dropout)};
  if (f.latent) {
    // Biases of latent attention stand at the projections down and at the output.
    a.latents = read_latents(config, facts, prefix, bias);
    a.selector = read_selector(config, f.selector, prefix);
    const std::int64_t still = config.size({"qk_nope_head_dim"}, kMostWidth);
    a.kv_heads = a.heads;
    a.head_size = still + a.latents->rope_size;
    a.value_head_size = config.size_or({"v_head_dim"}, still, kMostWidth);
    a.rotary_size = a.latents->rope_size;
    a.query = named(a.latents->query_rank > 0 ? "q_b_proj" : "q_proj", false);
    return a;
  }
  if (!f.value_size.empty()) {
    a.value_head_size = config.size_or({f.value_size}, a.head_size, kMostWidth);
  }
  a.qk_norm = read_qk_norm(config, f.qk_norm, prefix);
  if (!f.gate.empty() && read_switch(config, f.gated)) {
    a.gate = f.gate_per_head ? AttentionGate::per_head : AttentionGate::separate;
    a.gate_names = named(f.gate, bias && !f.gate_per_head);
  }
  if (!f.fused.empty()) {
    a.layout = QkvLayout::fused;
    a.fused = named(f.fused, bias);
    return a;
  }
  a.query = named(f.query, bias);
  a.key = named(f.key, bias);
  a.value = named(f.value, bias);
  return a;
}

Attention read_other_attention(ConfigObject& config, const DecoderFacts& facts, const Sizes& sizes,
                               Attention attention) {
  const OtherAttentionFacts& f = *facts.attention.other;
  const auto size_of = [&config](std::string_view key, std::int64_t usual, std::int64_t most) {
    return key.empty() ? usual : config.size_or({key}, usual, most);
  };
  const double rotated =
      static_cast<double>(sizes.rotary_size) / static_cast<double>(sizes.head_size);
  attention.heads = size_of(f.heads, attention.heads, kMostHeads);
  attention.kv_heads = size_of(f.kv_heads, attention.kv_heads, kMostHeads);
  const bool has_values = attention.value_head_size != attention.head_size;
  attention.head_size = size_of(f.head_size, attention.head_size, kMostWidth);
  if (!has_values) attention.value_head_size = attention.head_size;
  attention.value_head_size = size_of(f.value_size, attention.value_head_size, kMostWidth);
  attention.rotary_size =
      static_cast<std::int64_t>(std::llround(rotated * static_cast<double>(attention.head_size)));
  config.require_multiple(f.kv_heads.empty() ? f.heads : f.kv_heads, attention.heads,
                          attention.kv_heads);
  return attention;
}

Mlp make_mlp(const MlpFacts& facts, const std::string& prefix, std::int64_t width,
             const std::string& activation, bool bias) {
  const std::string stem = prefix + std::string(facts.prefix);
  Mlp mlp{.width = width,
          .gated = facts.gated,
          .activation = activation,
          .down = weights(stem + std::string(facts.down), bias)};
  if (!facts.fused.empty()) {
    mlp.gate_up = weights(stem + std::string(facts.fused), bias);
    return mlp;
  }
  if (facts.gated) mlp.gate = weights(stem + std::string(facts.gate), bias);
  mlp.up = weights(stem + std::string(facts.up), bias);
  return mlp;
}

MoeSizes read_moe_sizes(ConfigObject& config, const MoeFacts& facts) {
  MoeSizes sizes;
  sizes.experts = config.size(
      {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"}, kMostExperts);
  sizes.per_token =
      config.size({"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk",
                   "moe_k", "moe_top_k", "top_k_experts"},
                  kMostExperts);
  if (sizes.per_token > sizes.experts) {
    config.fail("num_experts_per_tok",
                "is more than the " + std::to_string(sizes.experts) + " experts there are");
  }
  sizes.width = config.has("moe_intermediate_size")
                    ? config.size({"moe_intermediate_size"}, kMostWidth)
                    : config.size({"intermediate_size"}, kMostWidth);
  switch (facts.shared) {
    case MoeFacts::Shared::none:
      break;
    case MoeFacts::Shared::counted:
      // Null is none, whatever the family's number. A file may give them a width of their own.
      sizes.shared_width =
          config.size_or({"moe_shared_expert_intermediate_size"}, sizes.width, kMostWidth) *
          config.count_or({facts.shared_key},
                          config.is_null(facts.shared_key) ? 0 : facts.shared_fallback,
                          kMostExperts);
      break;
    case MoeFacts::Shared::sized:
      sizes.shared_width = config.count_or({facts.shared_key}, facts.shared_fallback, kMostWidth);
      break;
  }
  sizes.bias = read_switch(config, facts.expert.bias);
  return sizes;
}

namespace {

/// Names of experts that one tensor holds under its bare name: no ".weight", "_bias" for the bias.
void strip(Weights& names) {
  constexpr std::string_view kEnd = ".weight";
  if (names.weight.empty()) return;
  names.weight.resize(names.weight.size() - kEnd.size());
  if (!names.bias.empty()) names.bias = names.weight + "_bias";
}

}  // namespace

Moe make_moe(const MoeFacts& facts, const std::string& prefix, const MoeSizes& sizes,
             const std::string& activation) {
  const std::string stem = prefix + std::string(facts.prefix);
  Moe moe{.experts = sizes.experts,
          .experts_per_token = sizes.per_token,
          .router = weights(stem + std::string(facts.router), facts.router_bias),
          .correction = facts.correction.empty() ? "" : stem + std::string(facts.correction),
          .expert = make_mlp(facts.expert, stem, sizes.width, activation, sizes.bias)};
  moe.expert.order = facts.order;
  if (facts.storage == MoeFacts::Storage::bare) {
    for (Weights* names :
         {&moe.expert.gate, &moe.expert.up, &moe.expert.gate_up, &moe.expert.down}) {
      strip(*names);
    }
  }
  if (sizes.shared_width > 0) {
    moe.shared = make_mlp(facts.shared_mlp, stem, sizes.shared_width, activation, sizes.bias);
    if (!facts.shared_gate.empty()) {
      moe.shared_gate = weights(stem + std::string(facts.shared_gate), false);
    }
  }
  return moe;
}

Architecture read_frame(ConfigObject& config, const DecoderFacts& facts, const Sizes& sizes) {
  Architecture a{
      .family = std::string(facts.family), .hidden = sizes.hidden, .max_sequence = sizes.positions};
  a.embedding = {
      .vocabulary = sizes.vocabulary,
      .width = sizes.hidden,
      .tokens = std::string(facts.embedding),
      .dropout = read_dropout(config, {"embd_pdrop", "embedding_dropout", "embed_dropout"}, 0)};
  a.head = {
      .norm = facts.final_norm.empty() ? Norm{} : norm(facts.norm, std::string(facts.final_norm)),
      .output = weights(std::string(facts.output), read_switch(config, facts.output_bias)),
      .tied = config.flag_or({"tie_word_embeddings"}, facts.tied),
      .caps_logits = config.limit_or("final_logit_softcapping", facts.caps_logits, 1e9) > 0};
  return a;
}

}  // namespace placet
