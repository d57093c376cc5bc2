// Communication per device class: every collective of a step, derived from where each value is
// produced and where it is needed (docs/theory.md §4). No rule here knows a strategy.
#pragma once

#include <vector>

#include "derive/buckets.h"
#include "derive/derivation.h"
#include "derive/layout.h"
#include "derive/stage_units.h"
#include "derive/stages.h"

namespace placet {

/// A collective of one unit: `count` is per micro-batch for activations and gathers that repeat,
/// else per step; `per_micro_batch` says which.
struct UnitTerm {
  CommunicationTerm term;
  bool per_micro_batch = false;
  MessageGrain grain = MessageGrain::unit;  // what one message of the engine carries
  bool sharded = false;                     // shards of the payload are padded to equal sizes
  std::int64_t shard_of = 1;                // the payload is one of so many such shards
  std::vector<BucketTensors> tensors;       // that make up the payload of MessageGrain::bucket
  int last_tensor = 0;                      // while it is collected: the last of these
};

/// Whether two terms are the same movement, payload and count left aside; of units' terms, in the
/// same kind of message.
bool is_same_movement(const CommunicationTerm& a, const CommunicationTerm& b);
bool is_same_movement(const UnitTerm& a, const UnitTerm& b);

/// The term of one call of a message, whatever kind of message says what it is.
template <class Message>
CommunicationTerm term_of(const Message& message, AxisMask axes, Bytes payload,
                          std::int64_t group) {
  return {.axes = axes,
          .collective = message.collective,
          .op = message.op,
          .state = message.state,
          .what = message.what,
          .dtype = message.dtype,
          .phase = message.phase,
          .payload = payload,
          .count = 1,
          .group = group};
}

/// Elements of a message of flattened tensors with the padding that makes its shards equal.
/// Case: 9024 elements over 2 shards, in all multiples of 128: 9088; one of the two: 4544 of 4512.
std::int64_t padded_message(const Profile& profile, const UnitTerm& term, std::int64_t elements);

/// Collectives of the values of one unit: entering and leaving parallel regions, partial sums,
/// attention over a cut sequence, routed tokens, what recomputation repeats.
std::vector<UnitTerm> activation_traffic(const Layout& layout, int unit, bool recomputed);

/// Where else the tensors of a unit stand, by parameter; empty: nowhere.
struct OtherUses {
  std::vector<bool> here;  // on the device, as another unit's, which carries gradient and update
  std::vector<bool> elsewhere;  // on one further device of the layer axes
};

/// Collectives and host copies of the parameters of one unit: gathers for use, reductions of
/// gradients, gathers after the update. Grains wider than a unit are applied by
/// derive_communication.
std::vector<UnitTerm> parameter_traffic(const Layout& layout, int unit, const OtherUses& uses);

/// Axes along which the gradient goes from partial to whole once per step: one group with the hosts
/// of a tensor that stands on several stages. None where an engine reduces between hosts apart.
AxisMask reduced_with_hosts(const Layout& layout, const LocalParameter& parameter);

/// Elements of a gradient that are left to reduce among further axes after the scatters of its own
/// axes: what gradients of shared tensors are reduced in between stages.
std::int64_t left_after_scatter(const Layout& layout, const LocalParameter& parameter);

/// What one local unit sends, before stages add it up.
struct UnitMessages {
  std::vector<UnitTerm> plain;       // of values, not recomputed; none of blocks that always are
  std::vector<UnitTerm> recomputed;  // of values of blocks, as the job's recomputation says
  std::vector<UnitTerm> parameters;  // of units without shared tensors
  bool shares_tensors = false;       // some parameter is another unit's tensor
};

/// By local unit.
std::vector<UnitMessages> messages_of_units(const Layout& layout);

/// Stages that host, send and receive alike are of one kind and derived once. Case: 32 blocks on
/// four stages: three kinds, that of the second and third stage shared.
struct StageKinds {
  std::vector<StageUnits> units;            // by kind
  std::vector<CommunicationClass> traffic;  // by kind; `stage` is the first of it
  std::vector<std::size_t> of_stage;        // by stage: its kind
};
/// `units`: by stage.
StageKinds stage_kinds(const Layout& layout, const std::vector<Stage>& stages,
                       const std::vector<StageUnits>& units,
                       const std::vector<UnitMessages>& messages);

/// The class of every stage.
std::vector<CommunicationClass> class_per_stage(const StageKinds& kinds,
                                                const std::vector<Stage>& stages);

/// One class per pipeline stage.
std::vector<CommunicationClass> derive_communication(const Layout& layout,
                                                     const std::vector<Stage>& stages);

}  // namespace placet
