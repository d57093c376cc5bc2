// The facts that a family of decoders fixes by code and not in its configuration files, as data,
// and the one reader that turns them and a file into an architecture. The defaults are those of the
// most common layout (llama); a family's table says where it differs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/config_object.h"
#include "model/architecture.h"

namespace placet {

/// A choice that a key makes, or, with an empty key, one that the family fixes.
struct Switch {
  std::string_view key;
  bool fallback = false;
};

struct NormFacts {
  NormKind kind = NormKind::rms;
  bool weight = true;
  bool bias = false;
};

struct QkNormFacts {
  Switch on;
  QkNorm::Span span = QkNorm::Span::per_head;
  std::string_view query = "q_norm";
  std::string_view key = "k_norm";
  NormFacts norm;
};

/// Which blocks see a window only. `on` must hold, and `size_key` must be present and not null.
struct WindowFacts {
  std::string_view size_key;  // empty: no windows
  Switch on{.fallback = true};
  std::int64_t size = 0;           // where the key is absent
  std::string_view period_key;     // every period-th block has none ...
  std::int64_t period = 0;         // ... with this default; 0: no such rule
  std::string_view first_key;      // blocks before this number have none
  bool unrotated_without = false;  // blocks without window have no rotary embedding
  /// Every period-th block has no rotary embedding (no_rope_layer_interval, or no_rope_layers block
  /// by block) and then no window; this where the file does not say. 0: no such rule.
  std::int64_t unrotated_period = 0;
};

/// The key selector of a family that always has one, where the file does not say. 0: only where the
/// file speaks of it.
struct SelectorFacts {
  std::int64_t heads = 0;
  std::int64_t head_size = 0;
  std::int64_t keys = 0;
};

/// How attention differs in blocks with a window, or in those without: keys that hold its sizes
/// there, each empty where it does not differ.
struct OtherAttentionFacts {
  bool windowed = true;  // which blocks: those with a window, else those without
  std::string_view heads;
  std::string_view kv_heads;
  std::string_view head_size;
  std::string_view value_size;
};

struct AttentionFacts {
  std::string_view prefix = "self_attn.";
  std::string_view query = "q_proj";
  std::string_view key = "k_proj";
  std::string_view value = "v_proj";
  std::string_view output = "o_proj";
  std::string_view fused;  // one tensor for the three; empty: three
  Switch bias{.key = "attention_bias"};
  std::optional<Switch> output_bias;  // none: as `bias`
  std::int64_t heads = 0;             // where the file does not say; 0: it must
  std::int64_t kv_heads = 0;          // where the file does not say; 0: as many as heads
  std::int64_t head_size = 0;         // where the file does not say; 0: hidden / heads
  double rotary_fraction = 1;         // of a head, where the file does not say
  QkNormFacts qk_norm;
  WindowFacts window;
  double caps_scores = 0;  // attn_logit_softcapping where the file does not say; 0: none
  std::string_view sinks;
  Switch sinks_windowed{.fallback = true};  // whether blocks with a window have them
  Switch sinks_full{.fallback = true};      // whether those without have them
  std::string_view value_size;              // key of the size of a value's head, if not the key's
  std::optional<OtherAttentionFacts> other;
  bool latent = false;  // multi-head latent attention
  SelectorFacts selector;
  std::string_view gate;  // a projection of its own that gates the result; empty: none
  Switch gated{.fallback = true};
  bool gate_per_head = false;  // one number for each head
};

struct MlpFacts {
  std::string_view prefix = "mlp.";
  bool gated = true;
  std::string_view gate = "gate_proj";
  std::string_view up = "up_proj";
  std::string_view down = "down_proj";
  std::string_view fused;  // gate and up in one tensor; empty: two
  Switch bias{.key = "mlp_bias"};
  std::string_view width = "intermediate_size";  // key of the width
};

struct MoeFacts {
  std::string_view prefix = "mlp.";
  std::string_view router = "gate";
  bool router_bias = false;
  std::string_view correction;  // name of the offset of the choice
  /// apart: a tensor per expert. stacked: one for all, "stem.weight". bare: one for all, "stem" and
  /// "stem_bias".
  enum class Storage : std::uint8_t { apart, stacked, bare };
  Storage storage = Storage::apart;
  WeightOrder order = WeightOrder::out_in;
  MlpFacts expert{.prefix = "experts.{expert}.", .bias = {}};
  /// shared experts: none; a count of experts of the routed width; a width of their own
  enum class Shared : std::uint8_t { none, counted, sized };
  Shared shared = Shared::none;
  std::string_view shared_key;       // the count or the width
  std::int64_t shared_fallback = 0;  // where the file does not say
  MlpFacts shared_mlp{.prefix = "shared_experts.", .bias = {}};
  std::string_view shared_gate;
  /// all: every block. after_dense: from first_k_dense_replace on, every moe_layer_freq-th.
  /// stepped: every decoder_sparse_step-th but mlp_only_layers. ranged: moe_layer_start_index and
  /// so on.
  enum class Layers : std::uint8_t { all, after_dense, stepped, ranged };
  Layers layers = Layers::all;
  std::int64_t dense_fallback = 0;  // blocks before the first mixture, where the file does not say
};

struct DecoderFacts {
  std::string_view family;
  std::string_view layer = "model.layers.{}.";
  std::string_view embedding = "model.embed_tokens.weight";
  std::string_view final_norm = "model.norm";
  std::string_view output = "lm_head";
  bool tied = false;  // where the file does not say
  Switch output_bias;
  NormFacts norm;
  std::string_view attention_norm = "input_layernorm";  // empty: none
  std::string_view attention_norm_after;
  std::string_view mlp_norm = "post_attention_layernorm";
  std::string_view mlp_norm_after;
  Switch parallel;              // attention and mlp stand side by side ...
  bool parallel_norm = false;   // ... and then share the first norm
  std::int64_t vocabulary = 0;  // where the file does not say; 0: it must
  double caps_logits = 0;       // final_logit_softcapping where the file does not say; 0: none
  AttentionFacts attention;
  MlpFacts mlp;
  std::optional<MoeFacts> moe;
  /// num_nextn_predict_layers: unknown here; modules as PredictionModule says; or modules of a kind
  /// that is not described, left out with a note.
  enum class Predictions : std::uint8_t { none, modelled, left_out };
  Predictions predictions = Predictions::none;
  double residual_dropout = 0;  // where the file does not say
  double attention_dropout = 0;
};

/// Sizes that nearly every family has, under their usual spellings.
struct Sizes {
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;  // 0: not limited
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;
  std::int64_t rotary_size = 0;
};

/// What of an MLP or a mixture a file decides.
struct MoeSizes {
  std::int64_t experts = 0;
  std::int64_t per_token = 0;
  std::int64_t width = 0;
  std::int64_t shared_width = 0;  // 0: no shared expert
  bool bias = false;              // of the experts' projections
};

/// What may differ between the blocks of a decoder.
struct LayerTraits {
  std::int64_t window = 0;
  bool rotated = true;
  bool sparse = false;
  bool selects = true;  // its own key selector chooses; else the choice of a block before is taken
  auto operator<=>(const LayerTraits&) const = default;
};

/// "stem.weight" and, with a bias, "stem.bias".
Weights weights(std::string stem, bool bias);
Norm norm(const NormFacts& facts, const std::string& stem);

Sizes read_sizes(ConfigObject& config, const DecoderFacts& facts);
/// hidden, layers, vocabulary and positions only, for decoders without heads. `vocabulary` stands
/// in where the file does not say; 0: it must.
Sizes read_stream_sizes(ConfigObject& config, std::int64_t vocabulary = 0);
bool read_switch(ConfigObject& config, const Switch& choice);
double read_dropout(ConfigObject& config, Keys keys, double fallback);
/// The activation's spelling; a word that is not known is an InputError.
std::string read_activation(ConfigObject& config, std::string_view fallback);

/// Attention with the biases, norms and dropout that the file chooses; every block's alike but for
/// window and rotation.
Attention read_attention(ConfigObject& config, const DecoderFacts& facts, const Sizes& sizes);
/// The attention of the other kind of block (OtherAttentionFacts), from the usual one's.
Attention read_other_attention(ConfigObject& config, const DecoderFacts& facts, const Sizes& sizes,
                               Attention attention);
MoeSizes read_moe_sizes(ConfigObject& config, const MoeFacts& facts);
Mlp make_mlp(const MlpFacts& facts, const std::string& prefix, std::int64_t width,
             const std::string& activation, bool bias);
Moe make_moe(const MoeFacts& facts, const std::string& prefix, const MoeSizes& sizes,
             const std::string& activation);

/// Traits of every block: windows, rotation, and which are mixtures of experts.
std::vector<LayerTraits> read_traits(ConfigObject& config, const DecoderFacts& facts,
                                     const Sizes& sizes);

/// Embedding, final norm, head and sizes; no blocks.
Architecture read_frame(ConfigObject& config, const DecoderFacts& facts, const Sizes& sizes);

/// Adds blocks that are told apart by a key: `make` is called once per distinct key.
template <class Key>
void add_blocks(Architecture& architecture, const std::vector<Key>& keys,
                const std::function<BlockShape(const Key&)>& make) {
  std::map<Key, int> seen;
  for (const Key& key : keys) {
    const auto [at, added] = seen.try_emplace(key, static_cast<int>(architecture.shapes.size()));
    if (added) architecture.shapes.push_back(make(key));
    architecture.order.push_back(at->second);
  }
}

/// Everything that a decoder's blocks are put together from.
struct DecoderParts {
  const DecoderFacts* facts = nullptr;
  Attention attention;
  std::optional<Attention> other;  // of blocks with a window or without, where that differs
  std::optional<Mlp> mlp;
  std::optional<Moe> moe;
  double dropout = 0;
  bool parallel = false;
};

DecoderParts read_parts(ConfigObject& config, const DecoderFacts& facts, const Sizes& sizes,
                        const std::vector<LayerTraits>& traits);
/// The attention of a block with these traits.
Attention attention_of(const DecoderParts& parts, const LayerTraits& traits);
BlockShape make_block(const DecoderParts& parts, const LayerTraits& traits);
/// Prediction modules are numbered on from the blocks and look like the last of them.
void add_predictions(ConfigObject& config, const DecoderParts& parts, const LayerTraits& last,
                     Architecture& architecture);

/// The whole of an ordinary decoder.
Architecture read_decoder(ConfigObject& config, const DecoderFacts& facts);

}  // namespace placet
