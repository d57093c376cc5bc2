// Engine profiles: how one version of a training engine realises a placement, as values read from
// data files (docs/theory.md §8). Nothing here names an engine: a profile is the list of its
// facts, each with its source, and the plain theory is the profile whose facts are all the
// defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profile/amounts.h"
#include "profile/kept.h"
#include "profile/sent.h"
#include "profile/timing.h"
#include "profile/training.h"

namespace placet {

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

  Precision precision;           // unless the job says otherwise
  std::string precision_unless;  // end of the note to a job without formats; empty: no note
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
  /// The gradient of the embedding's table is made whole where tensor axes divide its rows, and
  /// rests so unless other axes scatter it as it is made.
  bool table_gradients_whole = false;
  bool shared_gradients_as_computed = false;  // in the format of computation, not of reductions
  bool defers_scatter = false;  // divided gradients are reduced once, after the last micro-batch
  /// Gradients that stay whole until then are added up in the format that is reduced, not in that
  /// of the gradients that rest.
  bool defers_as_reduced = false;
  bool replicas_follow_scatter = false;    // axes of R are reduced whenever others are scattered
  bool replicas_each_micro_batch = false;  // gradients that rest whole are reduced each time
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
  FlatRest flat_rest = FlatRest::none;  // what rests in the flat buffers that shards are cut of
  bool parts_beside_whole = false;      // of tensors that stay whole the device's part rests, too
  bool joins_whole_updates = false;     // after the update these are gathered in one message
  std::int64_t persistent_elements = 0;  // tensors of fewer elements stay gathered
  bool joins_ends = false;    // embedding and head are one unit, gathered from first to last use
  std::int64_t prefetch = 0;  // units gathered ahead
  /// A unit stays gathered to its backward if so few elements are used in between; 0: none does.
  std::int64_t reuse_elements = 0;
  /// Where the whole model has at most `live_elements`, gathers for use put tensors together until
  /// a message has so many elements; 0: they do not.
  std::int64_t gather_bucket_elements = 0;
  std::int64_t live_elements = 0;
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
  /// Where no fp32 master stands beside the parameters, moments have their format.
  bool moments_like_parameters = false;
  /// Operators of these kinds cast what they take to the format of computation, weights included,
  /// and keep it; formats of all others follow from what they take (profile/autocast.h). Empty:
  /// formats are chosen before the step, not while it runs.
  std::vector<OpKind> autocasts;
  bool keeps_weight_copies = false;  // matrices in the products' format stay over micro-batches
  std::vector<std::string> weights_rest_in;  // formats of products in which their matrices rest
  bool keeps_wide_inputs = false;  // inputs of products in fewer bits are kept as they came, and
                                   // cast again in backward
  bool keeps_attention_result_once = false;  // as attention does: the product behind it keeps no
                                             // copy (but where scales are those of earlier steps)
  bool residual_shares_gradient = false;  // all inputs of a residual sum take its gradient as it is
  bool rotates_in_place = false;          // rotated queries and keys take the place of the others
  bool repeats_kv_heads = false;          // attention gets keys and values expanded to all heads
  bool drops_tokens = false;              // past an expert's capacity: another training
  std::int64_t vocabulary_multiple = 1;   // padded to this ...
  bool vocabulary_multiple_times_tensor_degree = false;  // ... times the tensor degree
  bool vocabulary_divides = false;   // what it is padded to must divide by the devices that cut it
  std::vector<int> loss_workspace;   // internals of the loss alive at its instant
  std::vector<LossStep> loss_steps;  // finer than loss_workspace, and instead of it where given
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

}  // namespace placet
