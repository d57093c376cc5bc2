// Ranks as processes of one machine. This process forks one for each rank and one that trains on
// one device, and is left with watching and judging: whatever happens to one of them, it notices
// within seconds, ends all others and says what it was.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "execute/ring_communicator.h"
#include "execute/strike.h"
#include "execute/team.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::execute {
namespace {

constexpr int kMostProcesses = 64;
/// A process that somebody stopped may be let go on again.
constexpr std::chrono::seconds kPatience{5};

using Clock = std::chrono::steady_clock;

std::string signal_text(int signal) {
  return "signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
}

/// A process that was forked here.
struct Child {
  pid_t id = -1;
  std::string name;  // "rank 2"
  bool ended = false;
  std::optional<Clock::time_point> stopped;
};

/// While it lives, this process is told how its children end, though whoever started it had set
/// that to be ignored.
class ToldOfChildren {
 public:
  ToldOfChildren() {
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    sigemptyset(&usual.sa_mask);
    sigaction(SIGCHLD, &usual, &before_);
  }
  ToldOfChildren(const ToldOfChildren&) = delete;
  ToldOfChildren& operator=(const ToldOfChildren&) = delete;
  ~ToldOfChildren() { sigaction(SIGCHLD, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

/// The processes that this one started. They end with it.
class Children {
 public:
  explicit Children(SharedRings& rings) : rings_(rings) {}
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() { end_all(); }

  /// Runs `work` in a process of its own, the next end of the rings.
  template <class Work>
  void start(const std::string& name, const Work& work) {
    const int end = static_cast<int>(children_.size());
    const pid_t parent = getpid();
    std::fflush(nullptr);
    const pid_t id = fork();
    if (id < 0) {
      throw InputError({.where = "--ranks process",
                        .value = name,
                        .problem = std::string("gets no process: ") + std::strerror(errno),
                        .allowed = "a higher limit of processes, or --ranks virtual"});
    }
    if (id > 0) {
      children_.push_back({.id = id, .name = name});
      return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    _exit(live(end, work));
  }

  /// Throws InputError for one that died, stopped or failed. Gives why one says that what it
  /// computes cannot be.
  std::optional<std::string> look() {
    for (std::size_t k = 0; k < children_.size(); ++k) {
      look_at(children_[k], static_cast<int>(k));
      if (rings_.trouble(static_cast<int>(k)) == SharedRings::Trouble::wrong) {
        return rings_.why(static_cast<int>(k));
      }
    }
    return std::nullopt;
  }

 private:
  /// What a process does until it ends; gives its status.
  template <class Work>
  int live(int end, const Work& work) {
    try {
      const std::optional<std::string> problem = work();
      if (!problem) return 0;
      rings_.tell(end, SharedRings::Trouble::wrong, *problem);
    } catch (const std::exception& error) {
      rings_.tell(end, SharedRings::Trouble::broken, error.what());
    } catch (...) {
      rings_.tell(end, SharedRings::Trouble::broken, "an unknown fault");
    }
    return 1;
  }

  void look_at(Child& child, int end) {
    if (child.ended) return;
    int status = 0;
    const pid_t changed = waitpid(child.id, &status, WNOHANG | WUNTRACED | WCONTINUED);
    if (changed == child.id) {
      if (WIFSTOPPED(status)) child.stopped = Clock::now();
      if (WIFCONTINUED(status)) child.stopped.reset();
      child.ended = WIFEXITED(status) || WIFSIGNALED(status);
    } else if (changed < 0 && errno == ECHILD) {
      child.ended = true;
      lose(child, "is gone, and nobody says how it ended");
    }
    if (child.ended && WIFSIGNALED(status)) {
      lose(child, "was ended by " + signal_text(WTERMSIG(status)));
    }
    if (child.ended && WEXITSTATUS(status) != 0) lose_failed(child, end);
    if (child.stopped && Clock::now() - *child.stopped > kPatience) {
      lose(child, "has been stopped for " + std::to_string(kPatience.count()) + " s");
    }
  }

  [[noreturn]] void lose(const Child& child, const std::string& how) {
    end_all();
    throw InputError({.where = child.name, .problem = how + "; all others were ended too"});
  }

  void lose_failed(const Child& child, int end) {
    if (rings_.trouble(end) == SharedRings::Trouble::wrong) return;
    const std::string why = rings_.why(end);
    const bool names_itself = why.starts_with(child.name + ":");
    lose(child, names_itself ? why.substr(child.name.size() + 2) : "failed: " + why);
  }

  void end_all() {
    for (const Child& child : children_) {
      if (!child.ended) kill(child.id, SIGKILL);
    }
    for (Child& child : children_) {
      while (!child.ended && waitpid(child.id, nullptr, 0) < 0 && errno == EINTR) {
      }
      child.ended = true;
    }
  }

  ToldOfChildren told_;
  SharedRings& rings_;
  std::vector<Child> children_;
};

/// Messages to the process that judges.
constexpr std::uint64_t kReports = 3;
constexpr std::uint64_t kLedgers = 4;
constexpr std::uint64_t kTimes = 5;
/// Ranks are ready for a step, and are told to begin it; the one device, when they are done, as it
/// is not to share a processor with them.
constexpr std::uint64_t kReady = 6;
constexpr std::uint64_t kTurns = 7;

Bytes bytes_of_time(double seconds) {
  Bytes bytes(sizeof(seconds));
  std::memcpy(bytes.data(), &seconds, sizeof(seconds));
  return bytes;
}

double time_from(const Bytes& bytes) {
  double seconds = 0;
  std::memcpy(&seconds, bytes.data(), std::min(bytes.size(), sizeof(seconds)));
  return seconds;
}

template <class Numbers>
class ProcessTeam : public Team<Numbers> {
  using Stored = typename Numbers::Stored;

 public:
  explicit ProcessTeam(TeamWork<Numbers> work)
      : work_(std::move(work)),
        ranks_(require_few(work_.setting.mesh.ranks())),
        rings_(ranks_ + 2),
        children_(rings_),
        judge_(ranks_ + 1, ranks_ + 2, rings_, [this] { watch(); }) {
    work_.setting.strike = strike_process;
    for (int r = 0; r < ranks_; ++r) {
      children_.start("rank " + std::to_string(r), [this, r] { return be_rank(r); });
    }
    children_.start("the one device", [this] { return be_one_device(); });
  }

  std::optional<std::string> run_step(int step) override {
    const auto number = static_cast<std::uint64_t>(step);
    seconds_ = 0;
    if (!begin_together(number)) return wrong_;
    for (int r = 0; r < ranks_; ++r) {
      const std::optional<Bytes> time = awaited(r, {.group = kTimes, .meeting = number});
      if (!time) return wrong_;
      seconds_ = std::max(seconds_, time_from(*time));
    }
    judge_.send(ranks_, {.group = kTurns, .meeting = number}, {}, {});
    for (int end = 0; end <= ranks_; ++end) {
      const std::optional<Bytes> report = awaited(end, {.group = kReports, .meeting = number});
      if (!report) return wrong_;
      const bool alone = end == ranks_;
      put_back(alone ? work_.expected : work_.found,
               alone ? reported(work_.reference) : reported(work_.plan, end),
               unpacked<Stored>(*report));
    }
    if (!first_sent_.empty()) return std::nullopt;
    for (int r = 0; r < ranks_; ++r) {
      const std::optional<Bytes> ledger = awaited(r, {.group = kLedgers});
      if (!ledger) return wrong_;
      first_sent_.push_back(ledger_from(*ledger));
    }
    return std::nullopt;
  }

  double seconds() const override { return seconds_; }
  std::vector<Ledger> first_sent() const override { return first_sent_; }

 private:
  static int require_few(int ranks) {
    if (ranks <= kMostProcesses) return ranks;
    throw InputError(
        {.where = "--ranks process",
         .value = std::to_string(ranks),
         .problem = "are too many processes for one machine",
         .allowed = "at most " + std::to_string(kMostProcesses) + " ranks, or --ranks virtual"});
  }

  void watch() {
    if (!wrong_) wrong_ = children_.look();
  }

  /// A message to this process. None: one says that what it computes cannot be.
  std::optional<Bytes> awaited(int from, const Label& label) {
    while (true) {
      if (auto bytes = judge_.receive(from, label)) return bytes;
      if (wrong_) return std::nullopt;
      judge_.wait();
    }
  }

  /// All ranks begin a step when the last is ready. False: one says that it cannot be.
  bool begin_together(std::uint64_t step) {
    for (int r = 0; r < ranks_; ++r) {
      if (!awaited(r, {.group = kReady, .meeting = step})) return false;
    }
    for (int r = 0; r < ranks_; ++r) judge_.send(r, {.group = kTurns, .meeting = step}, {}, {});
    return true;
  }

  void await_turn(Communicator& communicator, int step) const {
    const Label turn{.group = kTurns, .meeting = static_cast<std::uint64_t>(step)};
    while (!communicator.receive(ranks_ + 1, turn)) communicator.wait();
  }

  std::optional<std::string> be_rank(int r) {
    const ranks::Listing& listing = *work_.plan.listings[at(work_.plan.classes[at(r)])];
    RankMachine<Numbers> machine(work_.setting, r, listing);
    RingCommunicator communicator(r, ranks_ + 2, rings_, [] {});
    const RankPlace place = place_of(work_.plan, r);
    const Stretches told = reported(work_.plan, r);
    for (int step = work_.first_step; step < work_.first_step + work_.steps; ++step) {
      work_.draw_inputs(step);
      work_.prepare(step, r);
      load(machine, place, work_.found);
      communicator.send(ranks_ + 1, {.group = kReady, .meeting = static_cast<std::uint64_t>(step)},
                        {}, {});
      await_turn(communicator, step);
      const Stopwatch watch;
      if (auto problem = run_alone(machine, step, work_.order, communicator)) return problem;
      communicator.send(ranks_ + 1, {.group = kTimes, .meeting = static_cast<std::uint64_t>(step)},
                        bytes_of_time(watch.seconds()), {});
      save(machine, place, work_.found);
      report(communicator, step, taken(work_.found, told));
      if (step > work_.first_step) continue;
      communicator.send(ranks_ + 1, {.group = kLedgers}, bytes_of(communicator.ledger), {});
    }
    return std::nullopt;
  }

  std::optional<std::string> be_one_device() {
    RingCommunicator communicator(ranks_, ranks_ + 2, rings_, [] {});
    const Stretches told = reported(work_.reference);
    for (int step = work_.first_step; step < work_.first_step + work_.steps; ++step) {
      work_.draw_inputs(step);
      await_turn(communicator, step);
      if (auto problem = work_.train_alone(step)) return problem;
      report(communicator, step, taken(work_.expected, told));
    }
    return std::nullopt;
  }

  void report(Communicator& communicator, int step, const Parcel<Stored>& parcel) const {
    const Label label{.group = kReports, .meeting = static_cast<std::uint64_t>(step)};
    communicator.send(ranks_ + 1, label, packed(parcel), {});
  }

  TeamWork<Numbers> work_;
  int ranks_;
  SharedRings rings_;
  Children children_;
  RingCommunicator judge_;
  std::optional<std::string> wrong_;
  std::vector<Ledger> first_sent_;
  double seconds_ = 0;
};

}  // namespace

template <class Numbers>
std::unique_ptr<Team<Numbers>> process_team(TeamWork<Numbers> work) {
  return std::make_unique<ProcessTeam<Numbers>>(std::move(work));
}

template std::unique_ptr<Team<CanonicalNumbers>> process_team(TeamWork<CanonicalNumbers>);
template std::unique_ptr<Team<PlainNumbers<float>>> process_team(TeamWork<PlainNumbers<float>>);
template std::unique_ptr<Team<PlainNumbers<double>>> process_team(TeamWork<PlainNumbers<double>>);

}  // namespace placet::execute
