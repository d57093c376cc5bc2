// Engine profiles: how one version of a training engine realises a placement, as values read from
// data files (docs/theory.md §4.4). Nothing here names an engine: a profile is the list of its facts,
// each with its source, and the plain theory is the profile whose facts are all the defaults.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "placement/placement.h"
#include "profile/training.h"

namespace placet {

/// Which values an operator kind keeps for its backward: bit i of a mask is input, output or
/// internal i (see Operator in model/model.h).
struct SavedSlots {
  std::uint16_t inputs = 0;
  std::uint16_t outputs = 0;
  std::uint16_t internals = 0;
  friend bool operator==(const SavedSlots&, const SavedSlots&) = default;
};
using SavedTable = std::array<SavedSlots, kOpKindCount>;

/// The instants of a step at which memory is counted (docs/theory.md §3).
enum class Instant : std::uint8_t { forward, loss, backward, reduction, update };
inline constexpr int kInstantCount = 5;
using InstantSet = std::uint8_t;
constexpr InstantSet bit_of(Instant i) {
  return static_cast<InstantSet>(1U << static_cast<unsigned>(i));
}
std::string_view name_of(Instant instant);

/// Sizes that a profile's own terms are products of. All are of one device of the class in question.
enum class Symbol : std::uint8_t {
  micro_batch,       // samples per micro-batch
  micro_batches,     // per step
  sequence,          // tokens of a sample on this device, inside parallel regions
  residual_tokens,   // tokens of a sample on this device, on the residual stream
  hidden,
  vocabulary,        // the device's part, padding included
  parameters,        // trainable elements that the device computes with (after compute cuts)
  owned,             // elements whose optimizer state the device holds
  largest_unit,      // elements of its largest unit, after compute cuts
  largest_tensor,    // elements of its largest parameter tensor, after compute cuts
  blocks,            // blocks it hosts
  experts,           // experts it hosts
  data_degree,       // product of the axes along which dense gradients are partial
  tensor_degree,
  devices            // of the job
};
std::string_view name_of(Symbol symbol);
std::optional<Symbol> symbol_named(std::string_view name);

/// factor x product of symbols.
struct Amount {
  Rational factor{1};
  std::vector<Symbol> symbols;
  friend bool operator==(const Amount&, const Amount&) = default;
};

/// A condition on placement, job and device class; every part that is given must hold.
struct When {
  std::optional<Cut> cut;           // some axis with this cut ...
  std::int64_t degree_above = 1;    // ... and a product of degrees above this
  bool absent = false;              // instead: no such axis
  std::optional<State> state;       // ... along which this state ...
  std::vector<Mode> modes;          // ... lives in one of these modes
  std::optional<bool> first_stage;
  std::optional<bool> last_stage;
  std::optional<bool> accumulates;  // more than one micro-batch
  std::optional<bool> recomputes;   // whole units are recomputed
  std::optional<Dtype> compute;     // the job computes in this format
  friend bool operator==(const When&, const When&) = default;
};

/// What a memory term counts as; the keys of the report's bytes. The first four are the states.
enum class MemoryCategory : std::uint8_t {
  parameters, optimizer, gradients, activations, transient, overhead
};
inline constexpr int kMemoryCategoryCount = 6;
std::string_view name_of(MemoryCategory category);

/// A memory term that the theory does not imply but the engine has: its own buffers, workspaces,
/// contexts.
struct EngineMemory {
  std::string what;
  MemoryCategory category = MemoryCategory::overhead;
  InstantSet instants = 0;
  Amount bytes;
  std::vector<When> when;
  std::string source;
  friend bool operator==(const EngineMemory&, const EngineMemory&) = default;
};

/// The closed list of collectives.
enum class Collective : std::uint8_t {
  all_reduce, reduce_scatter, all_gather, all_to_all, send_recv, broadcast, host_copy
};
std::string_view name_of(Collective collective);
enum class ReduceOp : std::uint8_t { none, sum, max, min };
std::string_view name_of(ReduceOp op);
enum class Phase : std::uint8_t { forward, backward, reduce, update };
std::string_view name_of(Phase phase);

/// A message that an engine adds: scalars, flags, metadata, batch broadcasts.
struct EngineMessage {
  std::string what;
  Collective collective = Collective::all_reduce;
  ReduceOp op = ReduceOp::none;
  State state = State::activations;
  Dtype dtype = Dtype::fp32;
  Phase phase = Phase::update;
  std::vector<Cut> over;        // the group: all axes with these cuts (of dense tensors)
  bool over_all = false;        // instead: all devices
  Amount payload_elements;
  Amount count;                 // per step
  std::vector<When> when;
  std::string source;
  friend bool operator==(const EngineMessage&, const EngineMessage&) = default;
};

/// When a gradient buffer exists. resting: allocated once, lives on. growing: each tensor appears in
/// backward and is freed after the update.
enum class GradientLife : std::uint8_t { resting, growing };

/// What a state shard is cut from: each tensor by elements; each tensor by rows of its first dim
/// (padded to whole rows); each unit flattened; everything the device holds flattened.
enum class ShardGrain : std::uint8_t { element, row, unit, everything };

/// How a partial gradient becomes an owned part of the sum.
enum class ScatterPath : std::uint8_t { reduce_scatter, all_reduce_and_slice };

/// What one message of a state carries: a unit's tensors; everything the device holds, at once; the
/// same in buckets of so many elements.
enum class MessageGrain : std::uint8_t { unit, everything, bucket };

/// Where the whole input of a column-cut operator is kept from forward to backward.
enum class GatheredInput : std::uint8_t { shard /* gathered again */, whole };

/// How an engine cuts blocks into stages when no shares are given. even: equal counts, the first
/// stages larger. weighed: embedding and head count as so many blocks. by_cost: a stage closes after
/// the block whose running cost (elements of its matrices; the head's included) reaches its part of
/// the total; by_cost_late: passes it.
enum class StageCut : std::uint8_t { even, weighed, by_cost, by_cost_late };

/// A rule an engine enforces; broken means the finding `engine`.
struct Refusal {
  std::string what;         // message, one sentence
  std::string cure;
  std::vector<When> when;   // refused if all hold
  std::string source;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

/// A stated fact with its source, as `validate --constants` lists it.
struct Fact {
  std::string key;     // path in the data file
  std::string value;
  std::string source;
  friend bool operator==(const Fact&, const Fact&) = default;
};

struct Profile {
  std::string name = "placet";
  std::string version;
  std::string date;

  Precision precision;  // unless the job says otherwise
  // --- gradients and optimizer
  GradientLife gradient_life = GradientLife::resting;
  ScatterPath scatter_path = ScatterPath::reduce_scatter;
  bool layer_cut_defers_sharding = false;  // with pipeline stages: gathers kept over the step and
                                           // gradients reduced once
  MessageGrain gradient_grain = MessageGrain::unit;  // of reductions
  MessageGrain update_grain = MessageGrain::unit;    // of gathers after the update
  std::int64_t bucket_elements = 0;                  // for MessageGrain::bucket
  // --- shards
  ShardGrain grain = ShardGrain::element;
  std::int64_t pad_elements = 1;  // shards are padded to multiples of this many elements
  std::int64_t prefetch = 0;      // units gathered ahead
  bool last_unit_stays_gathered = false;  // the head's unit is not freed between forward and backward
  // --- stages
  StageCut stage_cut = StageCut::even;
  std::int64_t embedding_weight = 0;  // in blocks, for StageCut::weighed
  std::int64_t head_weight = 0;
  // --- compute
  SavedTable saved{};
  GatheredInput gathered_input = GatheredInput::shard;
  bool repeats_kv_heads = false;        // attention gets keys and values expanded to all heads
  std::int64_t vocabulary_multiple = 1; // padded to this ...
  bool vocabulary_multiple_times_tensor_degree = false;  // ... times the tensor degree
  std::vector<int> loss_workspace;      // internals of the loss alive at its instant
  bool fuses_loss_sums = false;         // two of the three softmax statistics in one message
  bool fuses_weight_gradient = false;   // weight gradients are added to the buffer as they are made
  // --- own terms, messages, rules
  std::vector<EngineMemory> memory;
  std::vector<EngineMessage> messages;
  std::vector<Refusal> refusals;
  std::vector<Fact> facts;

  friend bool operator==(const Profile&, const Profile&) = default;
};

/// Which slots the plain theory keeps: what the backward formula of each operator needs, with an
/// attention kernel that recomputes probabilities (logsumexp kept) and unfused elementwise work.
SavedTable plain_saved_table();

}  // namespace placet
