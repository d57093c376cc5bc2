// Bytes that ranks send and hold, counted where the data moves and where buffers begin and end.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "execute/machine.h"
#include "execute/run.h"
#include "ranks/plan.h"

namespace placet::execute {

/// Format by element of a plan's memory: of buffers their own, of messages on the way that of what
/// is sent.
std::vector<Dtype> formats_of(const Program& program, const ranks::ProgramPlan& plan);

/// Counts what each rank sends in collectives and messages, transfer by transfer. What n ranks add
/// up for all of them goes round twice: each sends all but its part of the row of all elements,
/// once to the owners of the parts and once from them.
class Communicator : public Watcher {
 public:
  Communicator(const Program& program, const ranks::ProgramPlan& plan,
               const std::vector<Dtype>& formats);

  void moves(const OperationList& list, const Operation& op) override;
  /// The rank that sends most in all, of equals the first.
  int busiest() const;
  /// Of that rank, by collective and axes.
  std::vector<SentBytes> sent() const;

 private:
  struct Key {
    std::string collective;
    std::vector<int> axes;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct OfRank {
    std::int64_t calls = 0;
    std::int64_t bits = 0;
  };
  int rank_at(std::int64_t address) const;
  std::int64_t bits_at(std::int64_t address) const;
  void add_transfer(const OperationList& list, const Transfer& transfer, InstructionKind kind,
                    std::map<int, OfRank>& of);

  const Program& program_;
  const ranks::ProgramPlan& plan_;
  const std::vector<Dtype>& formats_;
  std::vector<std::int64_t> ends_;  // of each rank's buffers
  std::map<Key, std::map<int, OfRank>> sent_;
};

/// Follows every rank's buffers through a step; of the rank with the highest peak.
HeldBytes held_bytes(const Program& program, const ranks::ProgramPlan& plan,
                     const ranks::Mesh& mesh);

}  // namespace placet::execute
