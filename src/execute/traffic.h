// Bytes that ranks send and hold, counted where the data moves and where buffers begin and end.
#pragma once

#include <map>
#include <vector>

#include "execute/ledger.h"
#include "execute/machine.h"
#include "execute/run.h"
#include "ranks/plan.h"

namespace placet::execute {

/// Format by element of a plan's memory: of buffers their own, of messages on the way that of what
/// is sent.
std::vector<Dtype> formats_of(const Program& program, const ranks::ProgramPlan& plan);

/// Counts what each rank sends in collectives and messages, transfer by transfer, where all ranks
/// run in step: what their communicators count where they do not (execute/meeting.h says who sends
/// what to whom). Of a sum for all, both stages are counted at the member with the smallest part.
class TransferCount : public Watcher {
 public:
  TransferCount(const ranks::ProgramPlan& plan, const std::vector<Dtype>& formats);

  void moves(const OperationList& list, const Operation& op) override;

  std::vector<Ledger> by_rank;

 private:
  using BitsByRank = std::map<int, std::int64_t>;
  int rank_at(std::int64_t address) const;
  std::int64_t bits_at(std::int64_t address) const;
  void add_transfer(const OperationList& list, const Transfer& transfer, InstructionKind kind,
                    BitsByRank& of) const;
  void add_round(const OperationList& list, const Transfer& transfer, BitsByRank& of) const;

  const ranks::ProgramPlan& plan_;
  const std::vector<Dtype>& formats_;
  std::vector<std::int64_t> ends_;  // of each rank's buffers
};

/// What is told of a rank's buffers on their way through a step; samples, single numbers and what
/// lies on the host are left out.
class BufferWatcher {
 public:
  virtual ~BufferWatcher() = default;
  virtual void begins(int slot, std::int64_t bytes) = 0;
  virtual void ends(int slot) = 0;
  /// All that rests is there, or more is held than ever before.
  virtual void rests() = 0;
  virtual void peaks() = 0;
};

/// Follows one rank's buffers through a step. `watcher`: null where nobody asks.
HeldBytes held_bytes(const Program& program, const ranks::Listing& listing,
                     const ProgramCoordinates& place, BufferWatcher* watcher = nullptr);
/// Follows every rank's buffers through a step; of the rank with the highest peak.
HeldBytes held_bytes(const Program& program, const ranks::ProgramPlan& plan,
                     const ranks::Mesh& mesh);

/// The most bytes that a kernel of the list takes beside its buffers.
template <class Numbers>
std::int64_t workspace_bytes(const OperationList& list, const FunctionTable& functions);

}  // namespace placet::execute
