// All ranks of a run beside the one device, wherever they run: virtual ranks of this process,
// processes of this machine, or those of MPI. Each has its listing and its memory, and meets the
// others behind execute/communicator.h alone.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execute/queue_order.h"
#include "execute/rank_machine.h"
#include "ranks/plan.h"

namespace placet::execute {

/// What there is to do. `expected` is the memory of the one device, `found` that of all ranks, one
/// after the other.
template <class Numbers>
struct TeamWork {
  RankSetting setting;
  const ranks::ReferenceRun& reference;
  const ranks::ProgramPlan& plan;
  QueueOrder order;
  int first_step = 0;
  int steps = 0;
  Memory<Numbers>& expected;
  Memory<Numbers>& found;
  /// Puts the samples of a step, counted from 0, where the one device reads them.
  std::function<void(int step)> draw_inputs;
  /// The step on one device. Why it cannot be done; none: it is.
  std::function<std::optional<std::string>(int step)> train_alone;
  /// Puts in `found` what a rank begins the step with.
  std::function<void(int step, int rank)> prepare;
};

template <class Numbers>
class Team {
 public:
  virtual ~Team() = default;
  /// A step on one device and on all ranks. After it `expected` is what the one device holds and
  /// `found`, as far as it is compared, what the ranks hold. Gives why it cannot be done; none: it
  /// is. Throws InputError if a rank is lost.
  virtual std::optional<std::string> run_step(int step) = 0;
  /// Whether this process knows what the ranks hold, and judges it.
  virtual bool judges() const { return true; }
  /// What the last step took on the rank that took longest; of ranks in one process, on all; over
  /// MPI, on the first.
  virtual double seconds() const = 0;
  /// By rank, what the first step sent.
  virtual std::vector<Ledger> first_sent() const = 0;
};

/// All ranks in this process, one instruction after the other.
template <class Numbers>
std::unique_ptr<Team<Numbers>> virtual_team(TeamWork<Numbers> work);
/// Each rank in a process of its own. Throws InputError where there are no processes.
template <class Numbers>
std::unique_ptr<Team<Numbers>> process_team(TeamWork<Numbers> work);
/// This process is one rank of those that mpirun started; the first judges. Throws InputError where
/// this program was built without MPI, or for another number of ranks.
template <class Numbers>
std::unique_ptr<Team<Numbers>> mpi_team(TeamWork<Numbers> work);

// What the three have in common.

/// Where a rank's memory stands in that of all.
struct RankPlace {
  std::int64_t first = 0;
  std::int64_t size = 0;
};
RankPlace place_of(const ranks::ProgramPlan& plan, int rank);

/// What is known of a rank after a step: all that is compared, and what is to stay zero.
Stretches reported(const ranks::ProgramPlan& plan, int rank);

/// All tensors of the one device.
Stretches reported(const ranks::ReferenceRun& reference);

/// "step 2, rank 1, instruction 7: a number is out of range".
std::string out_of_range_text(int step, int rank, int instruction);

/// Puts numbers where they were taken.
template <class Numbers>
void put_back(Memory<Numbers>& memory, const Stretches& to,
              const Parcel<typename Numbers::Stored>& parcel);

/// Copies a rank's memory from and to that of all.
template <class Numbers>
void load(RankMachine<Numbers>& rank, const RankPlace& place, const Memory<Numbers>& all);
template <class Numbers>
void save(const RankMachine<Numbers>& rank, const RankPlace& place, Memory<Numbers>& all);

/// How long ago it was made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

/// A step of one rank that waits for others: for those who are one rank. Why it cannot be done.
template <class Numbers>
std::optional<std::string> run_alone(RankMachine<Numbers>& rank, int step, const QueueOrder& order,
                                     Communicator& communicator);

}  // namespace placet::execute
