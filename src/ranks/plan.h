// All ranks of a program in lockstep, as one list of operations over one memory.
//
// What runs, what is alive and which ranks meet does not depend on numbers, so it is decided here,
// once for all seeds: each rank goes on until it comes to a collective, and a collective happens
// when all members of its group have come to the same one. A message is taken when it is sent, and
// waits for its receiver; what must not overtake what on which stream is not judged here.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ranks/groups.h"
#include "ranks/local_operations.h"
#include "ranks/rank.h"

namespace placet::ranks {

struct ProgramPlan {
  OperationList list;
  std::vector<BufferPlace> buffers;  // by address; what stands behind them are messages on the way
  std::vector<Region> once;          // filled before the first step: parameters, states, zeros
  std::vector<Region> fresh;         // filled before every step: inputs
  std::vector<Region> checks;        // compared after every step
  std::vector<int> classes;          // by rank
  std::vector<std::unique_ptr<Listing>> listings;  // by class
  std::optional<std::string> stuck;                // why and where it cannot run
};

/// Steps of a training, counted from 0.
struct StepRange {
  int first = 0;
  int count = 1;
};

class Planner {
 public:
  Planner(const Program& program, const ReferenceRun& reference, KernelLibrary& library,
          Mesh& mesh);
  /// The list is of one step, or of all of these where they differ. That a step runs again from
  /// what it left is tried for all of these: the first begins with what rests between steps.
  /// Throws InputError where the buffers of all ranks have more than `most` elements.
  ProgramPlan build(StepRange steps, std::int64_t most);

 private:
  struct RankState {
    const Listing* listing = nullptr;
    RankImage image;
    BufferStates buffers;
    std::size_t next = 0;  // instruction
  };
  struct Message {
    std::int64_t address = 0;
    std::int64_t size = 0;
  };

  void add_ranks(std::int64_t most);
  void add_regions(int rank);
  std::vector<Region> regions_of(int rank, const Initial& initial, const ListedRef& ref);
  std::size_t pieces_in(int rank, const ListedRef& ref) const;
  void run_step();
  void go_on(int rank);
  void pass_by(int rank);
  bool advance(int rank);
  bool run_one(int rank, const ListedInstruction& one);
  bool meet(int rank, const ListedInstruction& one);
  bool send(int rank, const ListedInstruction& one);
  bool receive(int rank, const ListedInstruction& one);
  bool arrived(int rank, const Instruction& at) const;
  void exchange(const std::vector<int>& group, const Instruction& what);
  std::string exchange_one(const std::vector<int>& group, const Instruction& what, std::size_t ref,
                           int piece);
  std::string fault_of_parts(const std::vector<int>& group, const Instruction& what,
                             const std::vector<Member>& members) const;
  LocalOperations local(int rank);
  void write_down(int rank, const ListedInstruction& one);
  Member member(int rank, const ListedRef& from, const ListedRef& to) const;
  void tag(int rank);
  void check_end();
  void check_blocked();
  /// Whether operations are written down: of the first step planned, of all where they differ.
  bool writes() const { return step_ == first_step_ || steps_differ_; }
  void stop(int rank, const std::string& problem);
  const ListedInstruction* current(int rank) const;
  RankState& state(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const RankState& state(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  const Program& program_;
  const ReferenceRun& reference_;
  KernelLibrary& library_;
  Mesh& mesh_;
  ProgramPlan plan_;
  std::vector<RankState> ranks_;
  std::map<std::pair<int, int>, std::deque<Message>> messages_;  // by sender and receiver
  int first_step_ = 0;
  int step_ = 0;
  bool steps_differ_ = false;  // some instruction is executed in one step only
};

/// "all_reduce 'gradients'": an instruction in messages.
std::string describe(const Instruction& instruction);

}  // namespace placet::ranks
