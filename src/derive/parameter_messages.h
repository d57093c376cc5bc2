// Messages of the parameters of one unit, one term per kind of movement and group, and the rules
// that write them. Inside of the files that write parameter_traffic.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "derive/communication.h"

namespace placet {

/// What moves, when, and what one message of it carries.
struct ParameterMove {
  Collective collective = Collective::all_gather;
  ReduceOp op = ReduceOp::none;
  State state = State::parameters;
  std::string_view what;
  Dtype dtype = Dtype::bf16;
  Phase phase = Phase::forward;
  bool per_micro_batch = false;
  MessageGrain grain = MessageGrain::unit;
  bool sharded = false;
  std::int64_t shard_of = 1;
  bool nvme = false;
  std::int64_t apart = 1;
  const std::vector<BlockConstants>* constants = nullptr;  // of its blocks, sent with the elements
  std::int64_t entries = 0;  // that the elements make up, several each; 0: they are the entries
};

/// Adds up what the parameters of one unit move.
class ParameterMessages {
 public:
  ParameterMessages(const Layout& of, int number);

  const Layout& layout;
  const Job& job;
  const Profile& profile;
  const LocalUnit& unit;
  const UnitKind& kind;

  /// Elements that move over axes; `group`: of a part of these, or of one device. Nothing where the
  /// group is one device, but for copies to and from the host.
  void add(const ParameterMove& move, AxisMask axes, std::int64_t elements, std::int64_t group = 0);

  /// From now on nothing is added but copies between device and host.
  void only_host_copies() { only_host_copies_ = true; }

  /// What is added from now on belongs to another tensor of the engine.
  void begin_tensor() { ++tensor_; }

  /// Elements of a tensor in a message between its shards over `axes`, padding included.
  std::int64_t padded(const LocalParameter& parameter, AxisMask axes) const;

  /// All of them, units padded as a whole where they are flattened.
  std::vector<UnitTerm> take();

 private:
  UnitTerm* known_message(const ParameterMove& move, const CommunicationTerm& made);
  void add_tensor(UnitTerm& term, std::int64_t size) const;
  Bytes sent_of_shards(const ParameterMove& move, AxisMask axes, std::int64_t elements,
                       std::int64_t group) const;

  int tensor_ = 0;  // at hand
  bool only_host_copies_ = false;
  std::vector<UnitTerm> terms_;
};

/// Rule 1 of docs/theory.md §4: gathers for use.
void write_use(ParameterMessages& out, const Parameter& declared, const LocalParameter& parameter);

/// Rule 2: reductions of a gradient. `hosted_elsewhere`: its tensor stands on another stage too,
/// and the last reduction takes that in.
void write_reduction(ParameterMessages& out, const LocalParameter& parameter,
                     bool hosted_elsewhere);

/// Rule 3: what the update must see, and what goes back after it.
void write_update(ParameterMessages& out, const Parameter& declared,
                  const LocalParameter& parameter);

}  // namespace placet
