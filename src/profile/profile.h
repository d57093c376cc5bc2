// Engine profiles: how one version of a training engine realises a placement, as values read from
// data files (docs/theory.md §8). Nothing here names an engine: a profile is the list of its
// facts, each with its source, and the plain theory is the profile whose facts are all the
// defaults.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "placement/placement.h"
#include "profile/timing.h"
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
/// start: before the first step, while the engine sets up; only the replay of requests sees it.
enum class Instant : std::uint8_t { forward, loss, backward, reduction, update, start };
inline constexpr int kInstantCount = 6;
using InstantSet = std::uint8_t;
constexpr InstantSet bit_of(Instant i) {
  return static_cast<InstantSet>(1U << static_cast<unsigned>(i));
}
std::string_view name_of(Instant instant);
/// The instants of a step: all but start.
inline constexpr InstantSet kEveryInstant = 0x1F;

/// Sizes that a profile's own terms are products of. All are of one device of the class in
/// question.
enum class Symbol : std::uint8_t {
  micro_batch,      // samples per micro-batch
  micro_batches,    // per step
  sequence,         // tokens of a sample on this device, inside parallel regions
  residual_tokens,  // tokens of a sample on this device, on the residual stream
  hidden,
  vocabulary,      // the device's part, padding included
  parameters,      // trainable elements that the device computes with (after compute cuts)
  owned,           // elements whose optimizer state the device holds
  largest_unit,    // elements of its largest unit, after compute cuts
  largest_tensor,  // elements of its largest parameter tensor, after compute cuts
  blocks,          // blocks it hosts
  experts,         // experts it hosts
  data_degree,     // product of the axes that divide samples or tokens of dense work
  tensor_degree,
  devices,         // of the job
  whole_sequence,  // tokens of a sample, before any cut
  global_batch,    // samples per step
  batch_degree,    // product of the axes that divide samples of dense work
  sequence_degree,
  stage_degree,   // product of the layer axes
  expert_degree,  // product of the axes along which experts are divided among devices
  chunks,         // virtual stages per device
  heads,          // query heads of the widest block
  kv_heads,
  model_blocks,          // of the whole model
  model_experts,         // routed experts per block, before any cut; 0: none
  choices,               // experts per token
  moe_blocks,            // blocks with routed experts that the device hosts
  expert_tensor_degree,  // product of the axes that cut the experts themselves
  moe_passes,            // moe_blocks, those twice whose experts run again in backward
  state_heads  // groups of state spaces or key heads of delta nets, before any cut; 0: none
};
inline constexpr int kSymbolCount = 31;
std::string_view name_of(Symbol symbol);
std::optional<Symbol> symbol_named(std::string_view name);

/// factor x product of symbols + added, but no more than `most`. Case: 4 owned at most 4e9 is
/// 4e9 from 1e9 owned elements on.
struct Amount {
  Rational factor{1};
  std::vector<Symbol> symbols;
  std::int64_t added = 0;
  std::optional<std::int64_t> most;
  friend bool operator==(const Amount&, const Amount&) = default;
};

/// A comparison of two amounts of symbols that a job alone fixes.
struct Comparison {
  enum class Relation : std::uint8_t { not_multiple, above };
  Relation relation = Relation::above;  // left is no multiple of right; left > right
  Amount left;
  Amount right;
  friend bool operator==(const Comparison&, const Comparison&) = default;
};

/// A state lives in one of these modes.
struct StateInModes {
  State state = State::parameters;
  std::vector<Mode> modes;
  friend bool operator==(const StateInModes&, const StateInModes&) = default;
};

/// A condition on placement, job and device class; every part that is given must hold.
/// Cut::expert speaks of the axes along which experts are divided, whatever dense work sees there.
struct When {
  std::vector<Cut> cuts;             // some axis with one of these cuts ...
  std::int64_t degree_above = 1;     // ... and a product of degrees above this
  bool absent = false;               // instead: no such axis; without axes: no such offload
  std::vector<StateInModes> states;  // ... along which all of this holds
  std::optional<bool> first_stage;
  std::optional<bool> last_stage;
  std::optional<bool> accumulates;       // more than one micro-batch
  std::optional<bool> recomputes;        // whole units are recomputed
  std::optional<bool> recomputes_some;   // units or parts of them are
  std::optional<Dtype> compute;          // the job computes in this format
  std::optional<bool> clips;             // gradients are clipped by their global norm
  std::optional<bool> scales_loss;       // the loss is scaled dynamically
  std::optional<bool> has_experts;       // the model has routed experts
  std::optional<bool> shares_embedding;  // embedding and output matrix are one tensor
  std::optional<bool> offsets_choice;    // experts are chosen by offset scores (router correction)
  std::optional<bool> drops_tokens;      // experts take no more tokens than they have slots
  std::vector<BalanceScope> balance;     // routers' balance loss is taken over one of these
  std::vector<std::string> optimizers;   // the job's optimizer is one of these
  std::optional<bool> states_stages;     // the placement states the blocks of each stage
  std::optional<State> offloads;         // some of this state is moved to host memory ...
  bool partly = false;                   // ... and some of it stays
  std::optional<bool> divides_checkpoints;   // kept unit inputs rest in parts
  std::optional<bool> exchanges_heads;       // attention over the sequence exchanges heads
  std::vector<std::string> schedule_beyond;  // stages work in an order not in this list
  std::optional<Comparison> compares;
  friend bool operator==(const When&, const When&) = default;
};

/// What a memory term counts as; the keys of the report's bytes. The first four are the states.
enum class MemoryCategory : std::uint8_t {
  parameters,
  optimizer,
  gradients,
  activations,
  transient,
  overhead
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
  Amount blocks;  // equal allocations that the bytes come in (1 unless said)
  std::vector<When> when;
  bool in_reserved = true;  // seen by figures of reserved memory (contexts are not)
  std::string source;
  friend bool operator==(const EngineMemory&, const EngineMemory&) = default;
};

/// The closed list of collectives.
enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  send_recv,
  broadcast,
  host_copy
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
  // The group: all axes of which one of these holds.
  std::vector<Cut> over;      // dense tensors have one of these cuts; expert: experts are divided
  bool over_all = false;      // any axis
  bool over_experts = false;  // experts are divided or cut
  bool over_cut_experts = false;  // the experts themselves are cut
  bool over_owners = false;       // devices of a stage update different elements
  bool over_instance = false;     // all but those along which samples are cut and every device
                                  // updates everything: one instance of a divided optimizer
  Amount payload_elements;
  Amount count;  // per step
  std::vector<When> when;
  std::string source;
  friend bool operator==(const EngineMessage&, const EngineMessage&) = default;
};

/// When a gradient buffer exists. resting: allocated once, lives on. growing: each tensor appears
/// in backward and is freed after the update.
enum class GradientLife : std::uint8_t { resting, growing };

/// What a state shard is cut from, and what is padded to equal shares. element: each tensor, shares
/// an exact partition, nothing padded; tensor: each tensor by elements, padded; row: each tensor by
/// rows of its first dim, padded to equally many; unit: each unit flattened, padded; everything:
/// all that the device holds flattened, padded.
enum class ShardGrain : std::uint8_t { element, row, unit, everything, tensor };

/// How a partial gradient becomes an owned part of the sum. reduce_scatter_if_gathered: by
/// reduce-scatter where the parameters rest in parts too, else by all-reduce and slice.
enum class ScatterPath : std::uint8_t {
  reduce_scatter,
  all_reduce_and_slice,
  reduce_scatter_if_gathered
};

/// Numbers quantised for the wire: in blocks, with one constant each.
struct Quantised {
  Dtype dtype = Dtype::int8;
  Dtype constants = Dtype::fp32;
  std::int64_t block =
      0;  // most numbers of a block; 0: as many blocks as a matrix has rows or columns
  friend bool operator==(const Quantised&, const Quantised&) = default;
};

/// What one message of a state carries: a unit's tensors; everything the device holds, at once; the
/// same in buckets of so many elements; one tensor.
enum class MessageGrain : std::uint8_t { unit, everything, bucket, tensor };

/// When a bucket of whole tensors is sent. before: before the tensor that would make it larger than
/// its size; after: as soon as its tensors reach that size.
enum class BucketEnd : std::uint8_t { before, after };

/// How tokens reach experts on other devices. exchange: each token goes to the devices of its
/// experts and back, and is gathered where an expert is cut. gather: all tokens go to all devices,
/// and results are reduced and scattered. whole_then_exchange: tokens are made whole along tensor
/// axes before they are sent, and results are reduced and scattered there.
/// exchange_once: as exchange, but a token goes once to each device that has some of its experts.
enum class TokenDispatch : std::uint8_t { exchange, gather, whole_then_exchange, exchange_once };

/// Where the whole input of a column-cut operator is kept from forward to backward.
enum class GatheredInput : std::uint8_t { shard /* gathered again */, whole };

/// How long a weight's gradient of one micro-batch lives before it is added to the resting
/// gradient: the operator that makes it, its unit, or the whole backward of the micro-batch.
enum class GradientHold : std::uint8_t { op, unit, micro_batch };

/// One step of the loss as the engine's kernels run it: a buffer of so many bytes per logit
/// appears, or vanishes. What is alive between the steps is the workspace of the loss.
struct LossStep {
  std::string buffer;
  bool appears = true;
  std::int64_t bytes_per_logit = 4;
  friend bool operator==(const LossStep&, const LossStep&) = default;
};

/// A selective recomputation by name: blocks are recomputed but for their input and what these
/// operators leave; of contractions one in `every` counts, the first of a block among them.
struct RecomputePolicy {
  std::string name;
  SavedTable keeps{};
  std::int64_t every = 1;
  bool keeps_unread = true;  // also results that backward never reads
  friend bool operator==(const RecomputePolicy&, const RecomputePolicy&) = default;
};

/// How an engine cuts blocks into stages when no shares are given. even: equal counts, the first
/// stages larger. weighed: embedding and head count as so many blocks. by_cost: a stage closes
/// after the block whose running cost (elements of its matrices; the head's included) reaches its
/// part of the total; by_cost_late: passes it.
enum class StageCut : std::uint8_t { even, weighed, by_cost, by_cost_late };

/// A rule an engine enforces; broken means the finding `engine`.
struct Refusal {
  std::string what;  // message, one sentence
  std::string cure;
  std::vector<When> when;  // refused if all hold
  std::string source;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

/// A stated fact with its source, as `validate --constants` lists it.
struct Fact {
  std::string key;  // path in the data file
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
  bool clips_by_default = false;  // by the global norm of gradients, unless the job says otherwise
  bool layer_cut_defers_sharding = false;  // with pipeline stages: gathers kept over the step and
                                           // gradients reduced once
  MessageGrain gradient_grain = MessageGrain::unit;  // of reductions
  MessageGrain update_grain = MessageGrain::unit;    // of gathers after the update
  std::int64_t bucket_elements = 0;                  // for MessageGrain::bucket
  std::int64_t bucket_elements_per_replica = 0;      // a bucket is at least this x batch_degree
  std::int64_t bucket_bytes = 0;                     // instead of elements
  std::int64_t first_bucket_bytes = 0;               // where the first bucket has another size
  BucketEnd bucket_ends = BucketEnd::before;
  bool joins_inputs =
      false;  // matrices of a module that read one value are one tensor (q, k and v)
  std::int64_t replica_bucket_bytes = 0;      // of gradients that replicas alone share, where
                                              // others go unit by unit; 0: they do too
  std::optional<Dtype> reduce_over_sequence;  // format of reductions under a sequence axis
  /// Of parameters gathered for use, and of gradients reduced to owners that hold parts of the
  /// parameters too: those are exchanged and summed on each host, then across hosts.
  std::optional<Quantised> quantised_gathers;
  std::optional<Quantised> quantised_reductions;
  bool later_stages_use_one_bucket = false;        // all but the first stage: everything at once
  MessageGrain gather_grain = MessageGrain::unit;  // of gathers for use
  /// Gradients of tensors that a tensor cut leaves whole (norm weights between parallel regions):
  /// what a message carries, and whether it carries whole tensors, apart from the scatter over
  /// other axes, rather than what the scatter leaves.
  MessageGrain shared_gradient_grain = MessageGrain::unit;
  bool shared_gradients_whole = false;
  bool defers_scatter = false;  // divided gradients are reduced once, after the last micro-batch
  bool replicas_follow_scatter = false;  // axes of R are reduced whenever others are scattered
  GradientHold gradient_hold = GradientHold::op;
  /// Parts of gradients that reductions leave, and updated parts before they are gathered, are
  /// buffers of their own beside the whole; else they are places inside it.
  bool parts_stand_apart = false;
  // --- shards
  ShardGrain grain = ShardGrain::element;
  std::optional<ShardGrain> gathered_grain;  // of parameters gathered for use; none: the same
  bool cuts_inside_few_experts = false;      // rows of stacked experts are those of each expert
      // where a device has fewer experts than there are shards
  std::int64_t pad_elements = 1;        // shards are padded to multiples of this many elements
  std::int64_t pad_total_elements = 1;  // and the whole to multiples of this many
  std::int64_t align_elements = 1;      // each tensor begins at a multiple of this, where flattened
  std::int64_t persistent_elements = 0;  // tensors of fewer elements stay gathered
  bool joins_ends = false;    // embedding and head are one unit, gathered from first to last use
  std::int64_t prefetch = 0;  // units gathered ahead
  bool last_block_stays_gathered = false;  // the model's last block is gathered once
  bool last_unit_stays_gathered =
      false;  // the head's unit is not freed between forward and backward
  // --- stages
  StageCut stage_cut = StageCut::even;
  std::int64_t embedding_weight = 0;  // in blocks, for StageCut::weighed
  std::int64_t head_weight = 0;
  // --- compute
  SavedTable saved{};
  SavedTable inner_gradients{};  // internals whose gradients pass between an operator's kernels
  std::vector<RecomputePolicy> policies;
  /// Modules that, where they are recomputed, keep nothing of what they hand to others either: what
  /// readers keep of their results is made again for them.
  std::vector<Module> discards;
  GatheredInput gathered_input = GatheredInput::shard;
  bool residual_shares_gradient = false;  // all inputs of a residual sum take its gradient as it is
  bool rotates_in_place = false;          // rotated queries and keys take the place of the others
  bool repeats_kv_heads = false;          // attention gets keys and values expanded to all heads
  std::int64_t vocabulary_multiple = 1;   // padded to this ...
  bool vocabulary_multiple_times_tensor_degree = false;  // ... times the tensor degree
  std::vector<int> loss_workspace;       // internals of the loss alive at its instant
  std::vector<LossStep> loss_steps;      // finer than loss_workspace, and instead of it where given
  std::vector<LossStep> loss_steps_cut;  // the same where the vocabulary is cut, if that differs
  bool fuses_output_and_loss = false;    // logits exist in small pieces only
  bool fuses_loss_sums = false;          // two of the three softmax statistics in one message
  bool fuses_weight_gradient = false;   // weight gradients are added to the buffer as they are made
  bool recompute_stops_early = false;   // a recomputed unit is not run past its last kept value
  bool ring_carries_gradients = false;  // backward round a ring: gradients travel with the pieces
  bool sends_boundary_in_parts =
      false;  // each tensor rank sends its part over a stage boundary; the
              // receivers gather it
  TokenDispatch token_dispatch = TokenDispatch::exchange;
  // --- the memory allocator that serves the engine
  bool gathered_input_has_buffer = false;  // whole inputs go to a buffer that rests
  bool caches_blocks = false;  // freed blocks stay reserved: figures of reserved memory differ
  bool expandable_segments = false;
  bool gathers_in_own_pool = false;  // gathered parameters come from a stream of their own
  bool reduces_in_own_pool = false;  // so do reduced gradients
  /// Buffers handed to collectives return to the pool only when the device has run them; a host
  /// that runs ahead of the device (a fact of the job) has up to `launch_queue` launches
  /// outstanding.
  bool collective_buffers_return_late = false;
  std::int64_t launch_queue = 1024;
  bool host_waits_at_sends =
      false;  // a stage's host waits for the device at every message it sends,
              // not only at those it receives
  std::int64_t launches_per_block = 0;  // kernels of one block, forward and backward together
  // --- time
  EngineTiming timing;
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
