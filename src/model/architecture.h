// A transformer as its makers describe it: sizes, order of the parts, and the checkpoint names of
// the weights; no tensors and no operators yet (build.h makes those). Nothing here names a family:
// what a family fixes by its code, the reader of its configuration files writes out in these words.
//
//   Architecture = embedding, blocks (distinct shapes and the order in which they are used), head,
//                  multi-token-prediction modules
//   block        = sublayers in order; each adds one or more branches to the residual stream
//   branch       = [norm] mixer [norm] [dropout]
//   mixer        = attention | state space | mlp | mixture of experts | one matrix
//
// An ordinary block has two sublayers of one branch (attention, then mlp); one whose attention and
// mlp read the same input has one sublayer of two branches; a block without any sublayer passes the
// stream on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/dtype.h"
#include "model/recurrence.h"

namespace placet {

/// Checkpoint names of a weight and its bias. "{}" stands for the block's number, "{expert}" for an
/// expert's where the checkpoint keeps experts apart. Empty: there is none.
struct Weights {
  std::string weight;
  std::string bias;

  friend bool operator==(const Weights&, const Weights&) = default;
};

/// Order of a matrix's dims in the checkpoint; counts and cuts do not depend on it.
enum class WeightOrder : std::uint8_t { out_in, in_out };

enum class NormKind : std::uint8_t { none, rms, layer };

/// A normalisation; names may be empty (a norm without parameters).
struct Norm {
  NormKind kind = NormKind::none;
  Weights names;

  friend bool operator==(const Norm&, const Norm&) = default;
};

/// Normalisation of queries and keys.
struct QkNorm {
  /// per_head: one weight of a head's size, used by every head. each_head: every head has its own.
  /// full: one norm over all heads together, whose statistics need all of them.
  enum class Span : std::uint8_t { per_head, each_head, full };
  Span span = Span::per_head;
  Norm query;
  Norm key;

  friend bool operator==(const QkNorm&, const QkNorm&) = default;
};

/// How queries, keys and values are projected.
/// separate: three tensors. fused: one tensor of (heads + 2 kv heads) x head size rows.
enum class QkvLayout : std::uint8_t { separate, fused };

/// Low-rank latents of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1).
/// Of a query and key head, rope_size elements are rotated and the others are not; the rotated part
/// of the key is one for all heads.
struct Latents {
  std::int64_t query_rank = 0;  // 0: queries are projected at once, by Attention::query
  std::int64_t key_value_rank = 0;
  std::int64_t rope_size = 0;
  Weights query_down;
  Norm query_norm;
  Weights key_value_down;  // rows: key_value_rank + rope_size
  Norm key_value_norm;
  Weights key_value_up;  // rows: heads x (unrotated size + value size)

  friend bool operator==(const Latents&, const Latents&) = default;
};

/// Makes one key of several tokens: weights per token and channel from a second projection, with a
/// learned offset per place (DeepSeek-V4's compressed attention).
struct KeyCompressor {
  std::int64_t tokens = 0;  // that make one key
  std::int64_t size = 0;    // of a key
  std::int64_t width = 0;   // columns of the projections: `size`, or twice that where keys overlap
  Weights key;
  Weights gate;
  std::string offsets;  // [tokens, width]
  Norm norm;

  friend bool operator==(const KeyCompressor&, const KeyCompressor&) = default;
};

/// A small scorer that picks the keys each query sees (DeepSeek-V3.2's sparse attention). Its heads
/// are few and are not cut.
struct KeySelector {
  std::int64_t heads = 0;
  std::int64_t head_size = 0;
  std::int64_t keys = 0;  // keys kept for each query
  Weights query;          // from the query latent, or where there is none from the input
  Weights key;
  Norm query_norm;
  Norm key_norm;
  Weights head_weights;                     // empty: heads count alike
  std::optional<KeyCompressor> compressor;  // makes the keys in place of `key`

  friend bool operator==(const KeySelector&, const KeySelector&) = default;
};

/// A gate on what attention returns: none, as further rows of the query projection, its own
/// projection, or one with a number per head.
enum class AttentionGate : std::uint8_t { none, in_query, separate, per_head };

/// Where values come from: a projection, the keys before their norm and rotation, the finished
/// keys, or, with the keys, another block.
enum class ValueSource : std::uint8_t { projected, raw_keys, keys, other_block };

struct Attention {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;        // of queries and keys
  std::int64_t value_head_size = 0;  // of values
  QkvLayout layout = QkvLayout::separate;
  WeightOrder order = WeightOrder::out_in;
  Weights query, key, value;  // separate
  Weights fused;              // fused
  Weights output;
  std::optional<QkNorm> qk_norm;
  ValueSource values = ValueSource::projected;
  Norm value_norm;               // per head
  std::int64_t rotary_size = 0;  // elements of a head that are rotated; 0: no rotary embedding
  std::int64_t window = 0;       // keys a query sees at most; 0: all before it
  bool caps_scores = false;      // cap x tanh(scores / cap) before the softmax
  std::string sinks;             // one learned number per head that joins the softmax; empty: none
  AttentionGate gate = AttentionGate::none;
  Weights gate_names;
  std::optional<Latents> latents;  // without a key_value_rank: of the queries only
  std::optional<KeySelector> selector;
  std::optional<KeyCompressor> compressor;  // further keys, beside those of the window
  /// The result leaves by groups of heads, each projected to its own latent of `output_rank`;
  /// `output` maps the latents to the stream. 0: no groups.
  std::int64_t output_groups = 0;
  std::int64_t output_rank = 0;
  Weights output_down;
  double dropout = 0;  // of the attention probabilities

  friend bool operator==(const Attention&, const Attention&) = default;
};

/// down(act(up x)), or, gated, down(act(gate x) * up x).
struct Mlp {
  std::int64_t width = 0;
  bool gated = true;
  std::string activation;  // as the source spells it: "silu"
  WeightOrder order = WeightOrder::out_in;
  Weights gate, up;  // gate unused unless gated
  Weights gate_up;   // the two in one tensor of 2 x width rows; then gate and up are empty
  Weights down;

  friend bool operator==(const Mlp&, const Mlp&) = default;
};

struct Moe {
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  Weights router;
  std::string correction;    // per-expert offset of the choice, set by a rule and not by gradients
  std::string expert_scale;  // per-expert factor of the weights, trained
  /// The router reads the stream itself, through this norm, and not what the experts read.
  std::optional<Norm> router_norm;
  /// Experts work on a latent of this size, not on the stream. 0: on the stream.
  std::int64_t latent = 0;
  Weights latent_down;
  Norm latent_norm;  // of what the experts return
  Weights latent_up;
  Mlp expert;
  std::optional<Mlp> shared;  // visited by every token
  Weights shared_gate;        // one number per token that scales the shared expert's result

  friend bool operator==(const Moe&, const Moe&) = default;
};

/// A recurrent mixer: state-space layers, gated delta nets, linear attention. Projections of the
/// input are split into streams; the recurrence turns some of them into `inner` channels.
struct StateSpace {
  /// What a slice of a projection is for.
  enum class Stream : std::uint8_t {
    mixed,  // passes the convolution (if any), then the recurrence
    step,   // steers the recurrence: step sizes, decays, update strengths
    gate    // gates the result
  };
  struct Slice {
    Stream stream = Stream::mixed;
    std::int64_t width = 0;
    friend bool operator==(const Slice&, const Slice&) = default;
  };
  struct Projection {
    Weights names;
    std::vector<Slice> slices;
    std::int64_t rank = 0;  // through a latent of this size; 0: at once
    Weights down;           // to the latent
    friend bool operator==(const Projection&, const Projection&) = default;
  };
  /// A parameter of the recurrence itself.
  struct Constant {
    std::string name;
    std::int64_t channels = 0;  // cut like the streams
    std::int64_t per_channel = 1;
    friend bool operator==(const Constant&, const Constant&) = default;
  };
  /// Steps computed from what the convolution returns (first-generation selective scan): a
  /// projection to rank + 2 x state numbers, norms of the three, and a projection back to `inner`.
  struct Selection {
    std::int64_t rank = 0;
    std::int64_t state = 0;
    Weights down;
    Weights up;
    Norm rank_norm, b_norm, c_norm;
    friend bool operator==(const Selection&, const Selection&) = default;
  };
  /// per_group: each of `pieces` slices of the channels has its own statistics and weights.
  /// shared_head: one weight of a head's size serves every head.
  enum class NormSpan : std::uint8_t { full, per_group, shared_head };

  Recurrence recurrence = Recurrence::selective_scan;
  std::int64_t inner = 0;   // channels of the result
  std::int64_t pieces = 1;  // pieces that a cut may not tear apart: groups or key heads
  std::vector<Projection> projections;
  Weights convolution;                // of a mixed stream
  std::vector<Weights> convolutions;  // one per mixed stream, in place of `convolution`
  std::int64_t kernel = 0;            // taps of the convolution; 0: none
  Nonlinearity after_convolution = Nonlinearity::silu;
  std::optional<Selection> selection;
  std::vector<Constant> constants;
  Norm norm;
  NormSpan norm_span = NormSpan::full;
  std::int64_t norm_heads = 1;  // shared_head: how many heads the result has
  bool norm_before_gate = false;
  Nonlinearity gate = Nonlinearity::silu;  // of the stream that gates the result
  Weights output;

  friend bool operator==(const StateSpace&, const StateSpace&) = default;
};

/// One hidden x hidden matrix in the place of a mixer, or two of a low rank. No cut divides them.
struct Projection {
  Weights names;
  bool replaces_attention = false;  // else an mlp
  std::int64_t rank = 0;            // 0: one matrix
  Weights back;                     // from the rank to the hidden size

  friend bool operator==(const Projection&, const Projection&) = default;
};

using Mixer = std::variant<Attention, StateSpace, Mlp, Moe, Projection>;

struct Branch {
  /// stream: the residual stream as it is now. same: what the branch before this one read (after
  /// its norm). block: the stream as it entered the block.
  enum class Input : std::uint8_t { stream, same, block };
  Input input = Input::stream;
  Norm norm;  // of the input
  Mixer mixer;
  Norm norm_after;     // of the result, before it joins the stream
  double dropout = 0;  // of the result

  friend bool operator==(const Branch&, const Branch&) = default;
};

/// How residual streams side by side become the one that mixers read, and take their result back:
/// numbers per token from a norm and a projection of the streams, and learned constants.
/// One stream: the numbers scale it (attention over earlier sums is not described further).
struct StreamMixing {
  struct Constant {
    std::string name;
    std::vector<std::int64_t> shape;
    friend bool operator==(const Constant&, const Constant&) = default;
  };
  Norm norm;
  Weights weights;  // empty: no projection
  std::int64_t coefficients = 0;
  std::vector<Constant> constants;  // that reading needs
  std::vector<Constant> returning;  // that writing back needs

  friend bool operator==(const StreamMixing&, const StreamMixing&) = default;
};

struct Sublayer {
  std::vector<Branch> branches;
  Norm norm_sum;                       // of the branches' sum, before it joins the stream
  Norm norm_after;                     // of the stream, after the branches joined it
  std::optional<StreamMixing> mixing;  // before the branches
  bool returns = false;                // after them the streams take their result back

  friend bool operator==(const Sublayer&, const Sublayer&) = default;
};

using BlockShape = std::vector<Sublayer>;

/// A second table of tokens with rows for all blocks, each of which reads its own part beside the
/// stream (gemma 3n). What it hands to the blocks is not described as a value of its own.
struct BlockInputs {
  std::string tokens;
  std::int64_t rows = 0;
  std::int64_t width = 0;   // of all blocks together
  std::int64_t blocks = 0;  // parts of it
  Weights projection;       // from the stream
  Norm norm;                // of a part

  friend bool operator==(const BlockInputs&, const BlockInputs&) = default;
};

struct EmbeddingShape {
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;  // of a row; if not the hidden size, `projection` maps it there
  std::string tokens;
  std::string positions;  // learned positions; empty: none
  std::int64_t position_rows = 0;
  Weights projection;
  Norm norm;
  double dropout = 0;
  std::optional<BlockInputs> block_inputs;
  Weights streams;  // makes the further streams of the first; empty: they are copies

  friend bool operator==(const EmbeddingShape&, const EmbeddingShape&) = default;
};

struct HeadShape {
  Norm norm;
  Weights projection;  // back to the embedding's width, where that is not the hidden size
  Weights output;
  bool tied = false;                   // the output matrix is the embedding's
  bool caps_logits = false;            // cap x tanh(logits / cap) before the loss
  std::optional<StreamMixing> mixing;  // makes one stream of several

  friend bool operator==(const HeadShape&, const HeadShape&) = default;
};

/// A module that predicts one token further (DeepSeek-V3, arXiv 2412.19437, section 2.2): the norms
/// of the next token's embedding and of the stream, a projection of both to the hidden size, a
/// block, a final norm and the output matrix. Embedding and output matrix are the model's own.
struct PredictionModule {
  std::int64_t number = 0;  // what "{}" in its names stands for
  Norm embedding_norm;
  Norm stream_norm;
  Weights projection;
  BlockShape block;
  Norm final_norm;
  std::string tokens;  // names under which the checkpoint repeats the two shared matrices
  std::string output;

  friend bool operator==(const PredictionModule&, const PredictionModule&) = default;
};

struct Architecture {
  std::string name;
  std::string family;
  std::int64_t hidden = 0;
  std::int64_t streams = 1;  // residual streams side by side
  EmbeddingShape embedding;
  std::vector<BlockShape> shapes;  // distinct
  std::vector<int> order;          // one position in `shapes` per block
  HeadShape head;
  std::vector<PredictionModule> predictions;
  std::int64_t max_sequence = 0;  // 0: not limited
  std::optional<Dtype> stored;    // format of the checkpoint's tensors
  std::vector<std::string> notes;
  std::vector<std::string> left_out;  // what is computed and changes no byte, in words

  friend bool operator==(const Architecture&, const Architecture&) = default;
};

}  // namespace placet
