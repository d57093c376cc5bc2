// The physical reading of a step program: all ranks run it on real numbers, and what they hold is
// compared with one device that trains the reference (docs/theory.md §6.11).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "execute/kernel_run.h"
#include "execute/meanings.h"
#include "execute/queue_order.h"
#include "execute/ran_span.h"
#include "execute/rank_fault.h"
#include "execute/rank_kind.h"
#include "execute/state.h"
#include "execute/watched.h"
#include "program/program.h"
#include "ranks/limits.h"

namespace placet {

/// How numbers are stored and added. canonical: exactly, so that bits depend on nothing but the
/// model and its data. declared: each buffer in its own format, products in binary32. binary32 and
/// binary64: all in that format, added in the order of the loops.
enum class Arithmetic : std::uint8_t { canonical, declared, binary32, binary64 };
std::string_view name_of(Arithmetic arithmetic);
/// Throws InputError for other words.
Arithmetic arithmetic_from(const std::string& word);

struct StepLoss {
  int step = 1;  // counted from 1, with those before a resumed run
  int last = 1;  // of the run
  double ranks = 0;
  double one_device = 0;
  bool equal = true;  // all that is compared after this step
  /// What the step took on the rank that took longest; of ranks in one process, on all of them;
  /// over MPI, on the first.
  double seconds = 0;
};

/// A number of a rank's state that changes by itself: one is added to the first entry of its part
/// of the tensor before that operation of that step, counted from 0.
struct StateUpset {
  int step = 0;
  std::size_t operation = 0;
  int rank = 0;
  std::string tensor;
};

struct RunOptions {
  int steps = 3;
  Arithmetic arithmetic = Arithmetic::canonical;
  Meanings meanings;
  ranks::RunLimits limits;
  /// Told of each step when it is done.
  std::function<void(const StepLoss&)> on_step = [](const StepLoss&) {};
  execute::Slip slip = execute::Slip::none;  // of the ranks, not of the one device
  /// Where the ranks live, and which of their queues goes on. Processes always have queues: of them
  /// `listed` is `early`.
  RankKind rank_kind = RankKind::in_one_process;
  QueueOrder order;
  std::vector<RankFault> rank_faults;
  /// What the ranks begin with, and one device with what the first of them holds; null: numbers
  /// that are drawn. `steps` are further ones.
  const execute::StateSource* resume = nullptr;
  /// A program that was proven and that the run is to be like: null where nothing is watched.
  const Program* proven = nullptr;
  std::optional<StateUpset> upset;  // of the ranks
  bool times = false;               // note when each operation ran
  /// Told what the ranks hold after the last step, unless they are stuck.
  std::function<void(const execute::StateView&)> on_end = [](const execute::StateView&) {};
};

/// What all ranks hold between steps, rank by rank. Throws as `run`.
std::vector<execute::StateSlice> state_slices(const Program& program,
                                              const ranks::RunLimits& limits);

/// An entry of what a rank holds that is not what one device holds.
struct Difference {
  std::string tensor;
  int rank = 0;
  std::vector<std::int64_t> index;  // in the whole tensor
  double expected = 0;
  double found = 0;
  int step = 1;

  friend bool operator==(const Difference&, const Difference&) = default;
};

/// What the rank that sends most sent in the first step, as the collectives moved it.
struct SentBytes {
  std::string collective;         // "all_reduce"
  std::vector<std::string> axes;  // outermost first
  std::int64_t calls = 0;
  std::int64_t bytes = 0;  // in the formats of the buffers

  friend bool operator==(const SentBytes&, const SentBytes&) = default;
};

/// What the buffers of the fullest rank take, in their formats.
struct HeldBytes {
  int rank = 0;
  std::int64_t rest = 0;  // when a step begins
  std::int64_t peak = 0;
  std::int64_t host = 0;     // peak of buffers in host memory
  std::int64_t samples = 0;  // peak of samples and of single numbers, which the others leave out
  std::string at;            // the instruction after which the peak is reached

  friend bool operator==(const HeldBytes&, const HeldBytes&) = default;
};

struct RealRun {
  Arithmetic arithmetic = Arithmetic::canonical;
  RankKind rank_kind = RankKind::in_one_process;
  QueueOrder order;
  bool judged = true;  // false: by another process, of which this one is a rank
  int ranks = 0;
  std::vector<StepLoss> steps;
  /// Canonical: every parameter, optimizer state and loss of every rank after every step has the
  /// bits of one device. Others: every loss is within `tolerance` of that of one device.
  bool equal = false;
  double tolerance = 0;       // relative, of losses; canonical: none
  std::int64_t compared = 0;  // entries
  std::uint64_t digest = 0;  // of all that is compared, after every step; equal bits, equal digests
  std::int64_t differing = 0;           // of these, entries with other bits
  double largest_difference = 0;        // of losses, relative
  std::vector<Difference> differences;  // the first of each tensor, after the first step with some
  std::optional<std::string> stuck;     // why and where it cannot run
  std::vector<SentBytes> sent;
  HeldBytes held;
  std::int64_t canonical_bytes = 0;            // what the numbers take here, of all ranks
  std::int64_t workspace_bytes = 0;            // and a kernel's own beside them, at most
  std::vector<std::string> meanings;           // "activation=silu"
  std::vector<execute::WatchFinding> watched;  // where it was watched: what was not as proven
  std::int64_t watched_readings = 0;           // sketches compared, in all steps
  std::vector<execute::RanSpan> spans;         // where times were asked for
  bool spans_cut_short = false;                // there were more operations
};

inline constexpr std::size_t kMostDifferences = 64;

/// Runs the program and its reference. The same call gives the same bits on every machine in
/// canonical mode. Throws InputError for programs beyond the limits, for functions without a
/// meaning, where parts of the program refer to what does not exist, and if a rank is lost: killed,
/// stopped, or at its end.
RealRun run(const Program& program, const RunOptions& options = {});

}  // namespace placet
