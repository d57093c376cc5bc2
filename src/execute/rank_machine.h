// One rank on its own: its listing, its memory, its queues (docs/theory.md §6.11).
//
// Queues run beside each other. An instruction is begun when those before it on its queue are done
// and, if it waits, when what it waits for is: the last record of that event before it in the
// listing. Nothing else holds it, so that an order that is missing in the program is missing here.
// What a buffer holds after `alloc` and after `free` is rubbish.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execute/meeting.h"
#include "execute/rank_fault.h"
#include "ranks/local_operations.h"
#include "ranks/plan.h"

namespace placet::execute {

/// What all ranks of a program share.
struct RankSetting {
  const Program& program;
  ranks::Mesh& mesh;
  ranks::KernelLibrary& library;
  const FunctionTable& functions;
  bool rounds = false;  // to the formats of buffers
  Slip slip = Slip::none;
  std::vector<RankFault> faults;
  /// What comes over a rank whose fault is to kill, stall or slow it.
  std::function<void(const RankFault&)> strike = [](const RankFault&) {};
};

template <class Numbers>
class RankMachine {
 public:
  /// Throws InputError for instructions that cannot run.
  RankMachine(const RankSetting& setting, int rank, const ranks::Listing& listing);

  /// Puts all instructions of a step, counted from 0, in their queues.
  void begin_step(int step);
  /// Goes on with one instruction of a queue.
  Progress advance(Stream stream, Communicator& communicator);
  /// Instructions of the step that are not done.
  std::size_t left() const { return left_; }
  bool is_done() const { return left_ == 0; }
  int rank() const { return memory_.rank; }
  /// The instruction of a queue that is next, for messages.
  int next_of(Stream stream) const;
  const Memory<Numbers>& numbers() const { return memory_.numbers; }
  Memory<Numbers>& numbers() { return memory_.numbers; }

 private:
  using Kind = InstructionKind;
  struct Task {
    const ranks::ListedInstruction* one = nullptr;
    std::ptrdiff_t operation = -1;  // in the list; -1: none
    const std::vector<int>* group = nullptr;
    std::uint64_t group_number = 0;
    // Of the step that is being run.
    int after = -1;  // the task that it waits for
    std::uint64_t meeting = 0;
    bool done = false;
  };
  struct Queue {
    std::vector<int> tasks;
    std::size_t next = 0;
    std::unique_ptr<Meeting<Numbers>> meeting;  // that is under way
  };

  void add(const ranks::ListedInstruction& one);
  void add_collective(const ranks::ListedInstruction& one, Task& task);
  void begin(int number);
  Progress run(Task& task, Queue& queue, Communicator& communicator);
  Progress meet(Task& task, Queue& queue, Communicator& communicator);
  Progress send(const Task& task, Communicator& communicator);
  Progress receive(Task& task, Communicator& communicator);
  MeetingPlan plan_of(const Task& task) const;
  void forget(const ranks::ListedInstruction& one);
  void forget(const ranks::ListedRef& ref);
  void begin_faults();
  Queue& queue(Stream stream) { return queues_[static_cast<std::size_t>(stream)]; }

  RankSetting setting_;
  const ranks::Listing& listing_;
  ranks::OperationList list_;
  ranks::RankImage image_;
  ranks::LocalOperations local_;
  RankMemory<Numbers> memory_;
  Machine<Numbers> machine_;
  std::vector<Task> tasks_;  // by instruction of the listing
  std::array<Queue, kStreamCount> queues_;
  std::map<std::uint64_t, std::uint64_t> met_;  // by group: meetings so far
  std::map<int, int> recorded_;                 // by event: the last task, while a step is begun
  std::map<const Task*, std::vector<Bytes>> came_;  // of messages that have not all come
  int step_ = 0;
  std::size_t left_ = 0;  // tasks of the step that are not done
  std::size_t middle_ = 0;
  bool struck_ = false;  // in this step
};

extern template class RankMachine<CanonicalNumbers>;
extern template class RankMachine<PlainNumbers<float>>;
extern template class RankMachine<PlainNumbers<double>>;

}  // namespace placet::execute
