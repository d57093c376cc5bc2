// What one collective takes on a cluster (docs/theory.md §7.3): latency of its steps and bytes over
// the bandwidth of the narrowest level that its ring crosses, or a measured curve where there is
// one. Which algorithm runs, changes time and never the bytes of §4.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "derive/derivation.h"
#include "profile/job.h"

namespace placet {

/// How a group lies on the topology: how many of its members share a domain of each level.
struct GroupPlace {
  std::int64_t size = 1;
  std::vector<std::int64_t> inside;  // by level, innermost first; the last one is all
  std::int64_t block = 1;            // it and its like tile blocks of so many ranks

  friend bool operator==(const GroupPlace&, const GroupPlace&) = default;
};

/// Of the groups that `axes` make on the levels of one group of the cluster, innermost first. Case:
/// dp=4 tp=4 on hosts of 8: tp {4, 4} in blocks of 4, dp {2, 4} in one block of 16, as both axes
/// together {8, 16}.
GroupPlace place_of(const std::vector<Level>& levels, const Placement& placement, AxisMask axes);

/// Of the copies that leave for other domains, those that are the first of their token there: each
/// of a token's choices falls into any of the domains alike. Case: 8 choices, two domains: of 4
/// that leave 1 - 1/256 are the first.
double first_copies(std::int64_t choices, std::int64_t domains);

/// Seconds of one all-reduce of `payload` bytes: the faster of a ring (2 (n-1) steps, each as slow
/// as the slowest link) and a tree (2 log2 of the domains, and the ring inside one) by latency, and
/// 2 (n-1)/n of the payload over the least of: the bandwidth inside a domain; that of a wider level
/// times the members that share a domain below it, since each brings a link of its own.
Seconds all_reduce_time(const std::vector<Level>& levels, const GroupPlace& place, double payload);

/// Of one reduce-scatter or all-gather, whose whole value has `payload` bytes: one time round a
/// ring. Half of a measured all-reduce where there is one.
Seconds scatter_time(const std::vector<Level>& levels, const GroupPlace& place, double payload);

/// What a ring of the group occupies of each level while it runs, 0 to 1: all of its narrowest
/// level, of others what passes there meanwhile, nothing of those it does not cross.
/// Case: 50 GB/s between hosts whose 8 members send at 450 GB/s each: {0.89, 1}.
std::vector<double> level_use(const std::vector<Level>& levels, const GroupPlace& place);

/// What the terms of one job take on its cluster: where a group lies is looked up once per set of
/// axes. `devices`: the groups that the sender's stage stands on. Each member waits for the
/// slowest, so that a message takes the longest of what it takes over the links of each of them; of
/// axes that join stages, of all groups of the cluster.
/// The job must live as long; one thread at a time.
class MessageTimer {
 public:
  explicit MessageTimer(const Job& job);

  /// Seconds of one call of the term; none without a cluster.
  /// An all-to-all sends to each of the group the same: what stays inside a domain and what leaves
  /// it go side by side.
  Seconds call(const CommunicationTerm& term, const GroupSet& devices);

  /// All calls of a step.
  Seconds all(const CommunicationTerm& term, const GroupSet& devices);

  /// What the host needs to launch them, beyond the engine's own time per collective.
  Seconds host(const CommunicationTerm& term, const GroupSet& devices);

  /// What copying the members' parts one by one takes, where the engine does that.
  Seconds copies(const CommunicationTerm& term, const GroupSet& devices);

  /// What a collective over `axes` occupies of each level of the cluster while it runs
  /// (`level_use`), or a message to a neighbour along them: all of the widest level that it
  /// crosses. Of several groups of devices as if all had the levels of the first. REQUIRES: a
  /// cluster.
  std::vector<double> use(AxisMask axes);
  std::vector<double> use_of_send(AxisMask axes);

  /// The levels themselves: of several groups those of the first, and the link that joins them.
  /// REQUIRES: a cluster.
  const std::vector<Level>& levels() const;

 private:
  struct Place {
    AxisMask axes = 0;
    std::size_t group = 0;
    GroupPlace place;
  };

  /// Tensors that a stage updates.
  std::int64_t updated_tensors() const;
  /// What several broadcasts take beyond one gather: to pass the ring once for each further owner.
  Seconds further_broadcasts(const std::vector<Level>& levels, const GroupPlace& place,
                             const CommunicationTerm& term) const;
  /// Copies of a token in the message, where only the first leaves for each domain; 1 otherwise.
  std::int64_t choices_of(const CommunicationTerm& term) const;
  const std::vector<Level>& levels_of(std::size_t group) const;
  const GroupPlace& place(AxisMask axes, std::size_t group);
  /// A collective over the links of one group.
  Seconds call_on(const CommunicationTerm& term, std::size_t group);
  /// The longest of `time(group)` over the groups that the term's members stand on.
  template <class Time>
  Seconds longest(const CommunicationTerm& term, const GroupSet& devices, Time time);

  const Job& job_;
  GroupSet all_;
  std::vector<std::vector<Level>> joined_;  // by group, of several: with the link between them
  std::vector<Place> places_;
};

/// One call, and all calls of a step, of a single term, whose members stand on all groups.
Seconds call_time(const Job& job, const CommunicationTerm& term);
Seconds term_time(const Job& job, const CommunicationTerm& term);

}  // namespace placet
