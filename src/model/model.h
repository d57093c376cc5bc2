// What is trained: parameters, operators with their index lists, and the values between them
// (docs/theory.md §1). A model is a list of units in order of use (embedding, blocks, head); equal
// units share one kind, so a thousand-layer model is as small as a two-layer one.
//
// The model knows nothing of placement. What a cut divides, what is partial, what must be saved for
// backward: all of it is read from the index lists here, by derive/ and lower/ apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/dtype.h"
#include "model/index.h"
#include "model/recurrence.h"

namespace placet {

/// Classes of tensors that a placement may treat apart; a tensor may be of several.
enum class TensorClass : std::uint8_t {
  experts,         // weights of routed experts
  shared_experts,  // experts every token visits
  router,          // gates that choose experts
  attention,       // projections, latents, q/k norms
  ffn,             // dense MLPs
  norms,           // normalisations, wherever they stand
  embedding,       // token and position embeddings
  head,            // output matrix
  adapters,        // LoRA matrices
  mtp              // multi-token-prediction modules
};
inline constexpr int kTensorClassCount = 10;
using ClassSet = std::uint16_t;
constexpr ClassSet bit_of(TensorClass c) {
  return static_cast<ClassSet>(1U << static_cast<unsigned>(c));
}
constexpr bool contains(ClassSet set, TensorClass c) { return (set & bit_of(c)) != 0; }
/// Spelling of the placement grammar: "shared-experts".
std::string_view name_of(TensorClass c);

/// One parameter tensor of a unit kind.
struct Parameter {
  /// Checkpoint name; "{}" stands for the block's number, "{expert}" and "{head}" for theirs where
  /// the checkpoint keeps them apart (the parameter is their stack all the same).
  std::string name;
  std::vector<Dim> dims;  // logical dims, experts stacked as a leading expert dim
  /// What its dim of heads is made of where a checkpoint writes projections to different indices as
  /// one tensor (query, key and value): their dims, whose sizes add up to that dim's. A cut divides
  /// each by its own index and parts. Empty: one piece.
  std::vector<Dim> segments;
  ClassSet classes = 0;
  bool trainable = true;
  bool inputs_first = false;  // a matrix that the checkpoint keeps as [in, out], as GPT-2's
  /// The unit kind that owns the storage if this is a second use of another unit's tensor (tied
  /// head, shared embedding of MTP): the parameter of the same position list named here.
  struct Tie {
    int kind = 0;
    int parameter = 0;
    friend bool operator==(const Tie&, const Tie&) = default;
  };
  std::optional<Tie> tied;
  /// Storage format if it differs from the job's precision (a frozen base in nf4).
  std::optional<Dtype> dtype;
  std::vector<BlockConstants> constants;  // of that format's blocks

  friend bool operator==(const Parameter&, const Parameter&) = default;
};

/// The position of the dim that the segments make up; -1: the parameter has none.
int segmented_dim(const Parameter& parameter);

/// Elements of a tensor: the product of its dims' sizes.
std::int64_t elements_of(const std::vector<Dim>& dims);

/// Where an operator computes with respect to a tensor cut.
/// residual: on the residual stream; along a tensor axis every device computes the whole (A=R) or
///   its own tokens (A=S*).
/// parallel: between the points where the stream is entered and left; tokens are whole, an index of
///   kTensorIndices is cut where the operator has one; where it has none, every device computes the
///   same from whole inputs and what flows back is partial.
enum class Region : std::uint8_t { residual, parallel };

/// What an operator is. The closed list that profiles speak of when they say what is saved, and
/// that time models know the cost of.
enum class OpKind : std::uint8_t {
  embedding,         // in: token ids; parameter [vocab, hidden]; a contraction over vocab
  position,          // adds a learned position embedding
  linear,            // contraction with one parameter; bias is an operator of its own
  grouped_linear,    // one linear per expert over the tokens routed to it
  bias,              // adds a parameter vector
  norm,              // rms or layer normalisation
  rotary,            // rotary position embedding
  attention,         // softmax(q k^T) v, the core
  activation,        // elementwise nonlinearity
  gated_activation,  // act(gate) * up
  multiply,          // elementwise product (attention gates, shared-expert gates)
  dropout,
  residual_add,
  router,       // softmax or sigmoid over expert logits, top-k
  dispatch,     // sends tokens to their experts' order
  combine,      // weighted sum of what came back
  convolution,  // short causal convolution of state-space blocks
  scan,         // state-space recurrence
  loss          // softmax cross entropy over the vocabulary
};
inline constexpr int kOpKindCount = 19;
std::string_view name_of(OpKind kind);
std::optional<OpKind> op_kind_named(std::string_view name);

/// The part of a block that an operator belongs to; what selective recomputation names.
enum class Module : std::uint8_t {
  embedding,
  norm,
  attention,
  core_attention,
  mlp,
  mlp_activation,
  moe,
  shared_expert,
  residual,
  head,
  loss,
  moe_activation,     // of routed experts; that of a shared expert belongs to it
  latent_projection,  // from latents up to the heads, with their rotation
};
inline constexpr int kModuleCount = 13;
std::string_view name_of(Module module);

/// Element format of a value relative to the job's compute format.
enum class ValueType : std::uint8_t { compute, fp32, mask /* one byte */, int64 };

/// A value that flows between operators, or that an operator's kernel makes inside and may keep.
struct Value {
  std::string name;       // "attention.q"
  std::vector<Dim> dims;  // sample and token first, extents 0 (the job's)
  ValueType type = ValueType::compute;
  Region region = Region::residual;  // region of the operator that produces it

  friend bool operator==(const Value&, const Value&) = default;
};

/// One operator of a unit kind. Inputs, outputs and internals are positions in UnitKind::values,
/// parameters in UnitKind::parameters.
///
/// Internals by kind, in this order (a profile names them when it says what is saved):
///   norm: statistics [sample, token] fp32, input_fp32, normalized (the input scaled, cast back),
///     normalized_fp32 (before it is cast back)
///   rotary: queries_fp32, keys_fp32 (before rotation, cast up)
///   attention: keys_expanded, values_expanded (kv heads repeated to all heads), logsumexp
///     [sample, head, token] fp32, scores, probabilities, dropout_mask, probabilities_dropped
///     (the last two only with attention dropout)
///   activation: none;  gated_activation: activated (act(gate));  dropout: dropout_mask
///   router: probabilities fp32;  loss: logits_fp32, probabilities fp32, gradient_fp32, gradient,
///     then per token, fp32: max (largest logit), sum (of exponentials), target (the label's logit)
struct Operator {
  OpKind kind = OpKind::linear;
  std::string name;
  Region region = Region::residual;
  Module module = Module::mlp;
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::vector<int> parameters;
  std::vector<int> internals;
  std::int64_t window = 0;   // attention: keys a query sees at most; 0: all that come before it
  bool caps_scores = false;  // attention: scores go through a function that limits them
  Recurrence recurrence = Recurrence::selective_scan;  // scan
  Nonlinearity nonlinearity = Nonlinearity::act;       // gated_activation: of the gate; convolution

  friend bool operator==(const Operator&, const Operator&) = default;
};

/// Positions of an operator's internal values, by kind (see Operator).
namespace internal {
inline constexpr int kNormStatistics = 0, kNormInputFp32 = 1, kNormNormalized = 2;
inline constexpr int kNormNormalizedFp32 = 3;
inline constexpr int kRotaryFp32 = 0, kRotaryKeysFp32 = 1;
inline constexpr int kKeysExpanded = 0, kValuesExpanded = 1, kLogSumExp = 2, kScores = 3,
                     kProbabilities = 4, kAttentionMask = 5, kProbabilitiesDropped = 6;
inline constexpr int kActivated = 0;
inline constexpr int kDropoutMask = 0;
inline constexpr int kRouterProbabilities = 0;
inline constexpr int kLogitsFp32 = 0, kLossProbabilities = 1, kLossGradientFp32 = 2,
                     kLossGradient = 3, kLossMax = 4, kLossSum = 5, kLossTarget = 6;
}  // namespace internal

enum class UnitRole : std::uint8_t { embedding, block, head, mtp };

/// A kind of unit: parameters gathered and freed together (one block by default), its values and
/// its operators in order of execution. Value 0 of a block is its input, the residual stream.
struct UnitKind {
  std::string name;  // "block", "dense block", "embedding", "head"
  UnitRole role = UnitRole::block;
  std::vector<Parameter> parameters;
  std::vector<Value> values;
  std::vector<Operator> operators;

  friend bool operator==(const UnitKind&, const UnitKind&) = default;
};

/// One unit in order of use.
struct Unit {
  int kind = 0;    // position in Model::kinds
  int number = 0;  // block number (what "{}" in names stands for); 0 for embedding and head

  friend bool operator==(const Unit&, const Unit&) = default;
};

/// Figures of the whole model that formulas of the field use.
struct ModelFigures {
  std::int64_t blocks = 0;  // transformer blocks, MTP not counted
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;
  std::int64_t attention_width = 0;  // sum over blocks of heads x head size (12 s x this: FLOPs)
  std::int64_t experts = 0;          // routed experts per MoE block, 0 if dense
  std::int64_t experts_per_token = 0;
  std::int64_t heads = 0;        // query heads of the widest block
  std::int64_t kv_heads = 0;     // of the widest block
  std::int64_t head_size = 0;    // of its query heads
  std::int64_t state_heads = 0;  // pieces of recurrences that no cut tears: groups of state spaces,
                                 // key heads of delta nets; the fewest over blocks, 0: none
  std::int64_t max_sequence = 0;  // 0: the model does not limit it

  friend bool operator==(const ModelFigures&, const ModelFigures&) = default;
};

struct Model {
  std::string name;
  std::string family;
  std::vector<UnitKind> kinds;
  std::vector<Unit> units;  // embedding, blocks in order, head, then MTP modules
  ModelFigures figures;
  std::optional<Dtype> stored;     // format of the checkpoint's tensors, where its config says it
  std::vector<std::string> notes;  // what the reader of a result should know ("text part only")
  std::vector<std::string> left_out;  // what is computed and no step program has, in words

  friend bool operator==(const Model&, const Model&) = default;
};

struct ParameterCounts {
  std::int64_t total = 0;                     // each shared tensor once
  std::int64_t active = 0;                    // used by one token: of E experts, k
  std::int64_t trainable = 0;                 // not frozen
  std::int64_t active_without_embedding = 0;  // active less input embedding and positions (a tied
                                              // matrix counts, as the head): the N of 6 N FLOPs
  std::int64_t prediction = 0;  // of `total`, the share of multi-token-prediction modules

  friend bool operator==(const ParameterCounts&, const ParameterCounts&) = default;
};

/// Elements of a parameter that one token's products take: of a stack of experts those that it
/// visits, of a table that is looked up none.
std::int64_t computing_elements(const UnitKind& kind, const Parameter& p,
                                std::int64_t experts_per_token);

/// Exact counts over all units; MTP modules are not in `active`.
ParameterCounts count_parameters(const Model& model);

/// Indices of a parameter: those of its dims and of the segments that make one up.
IndexSet indices_of(const Parameter& parameter);

/// Indices an operator runs over: the union of the dims of its inputs, outputs and parameters.
IndexSet indices_of(const UnitKind& kind, const Operator& op);

/// Indices the gradient of parameter `p` sums over: those of the operators that use it, less its
/// own (docs/theory.md §4.2). Case: a norm weight [hidden] used over [sample, token, hidden] sums
/// over {sample, token}.
IndexSet summed_indices(const UnitKind& kind, int p);

/// Throws InternalError if positions are out of range, a value is produced twice, a tie points to
/// itself, or a dim's size is not a multiple of its parts. Called by every builder in tests.
void validate(const Model& model);

/// Whether all that is known is a count of parameters: no shapes, and so no work.
bool is_bare(const Model& model);

}  // namespace placet
