// Ranks as processes that mpirun started, on one machine or several. The first one also trains on
// one device, is told what all hold, and judges.
#include "execute/mpi_ranks.h"

#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <list>
#include <map>
#include <thread>
#include <utility>

#include "execute/strike.h"
#include "execute/team.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::execute {
namespace {

constexpr int kTag = 1;
constexpr std::chrono::microseconds kPause{50};
/// MPI counts what it sends in an int.
constexpr std::size_t kMostBytes = std::size_t{1} << 30U;

int own_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int process_count() {
  int count = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  return count;
}

/// The first of all processes that cannot begin; as many as there are: all can. Each says once what
/// it is, when it begins or ends, and waits for the others; asked again, it is what it was.
int first_that_failed(bool has_failed) {
  static std::optional<int> first;
  if (!first) {
    const int own = has_failed ? own_rank() : process_count();
    MPI_Allreduce(&own, &first.emplace(), 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  return *first;
}

/// Each message carries its label, as MPI's tags are too short for one.
class MpiCommunicator : public Communicator {
 public:
  ~MpiCommunicator() override { finish(); }

  std::optional<Bytes> receive(int from, const Label& label) override {
    take_in();
    const auto found = come_.find({from, label});
    if (found == come_.end()) return std::nullopt;
    Bytes bytes = std::move(found->second);
    come_.erase(found);
    return bytes;
  }

  void wait() override {
    if (!take_in()) std::this_thread::sleep_for(kPause);
  }

  /// Until all that was sent has left.
  void finish() {
    while (!leaving_.empty()) wait();
  }

 protected:
  void transmit(int to, const Label& label, Bytes bytes) override {
    Leaving& one = leaving_.emplace_back();
    one.bytes.resize(sizeof(label) + bytes.size());
    std::memcpy(one.bytes.data(), &label, sizeof(label));
    if (!bytes.empty()) {
      std::memcpy(one.bytes.data() + sizeof(label), bytes.data(), bytes.size());
    }
    if (one.bytes.size() > kMostBytes) {
      refuse("--ranks mpi", std::to_string(one.bytes.size()) + " bytes",
             "are too many for one message", "at most " + std::to_string(kMostBytes));
    }
    MPI_Isend(one.bytes.data(), static_cast<int>(one.bytes.size()), MPI_BYTE, to, kTag,
              MPI_COMM_WORLD, &one.request);
  }

 private:
  struct Leaving {
    Bytes bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  /// All that has come. Gives whether there was something.
  bool take_in() {
    bool some = false;
    for (int there = 1; there != 0;) {
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      MPI_Improbe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &there, &message, &status);
      if (there == 0) break;
      some = true;
      int size = 0;
      MPI_Get_count(&status, MPI_BYTE, &size);
      Bytes bytes(at(size));
      MPI_Mrecv(bytes.data(), size, MPI_BYTE, &message, &status);
      Label label;
      ensure(bytes.size() >= sizeof(label), "a message begins with its label");
      std::memcpy(&label, bytes.data(), sizeof(label));
      bytes.erase(bytes.begin(), bytes.begin() + sizeof(label));
      come_.emplace(std::pair(status.MPI_SOURCE, label), std::move(bytes));
    }
    for (auto one = leaving_.begin(); one != leaving_.end();) {
      int done = 0;
      MPI_Test(&one->request, &done, MPI_STATUS_IGNORE);
      one = done != 0 ? leaving_.erase(one) : std::next(one);
    }
    return some;
  }

  std::map<std::pair<int, Label>, Bytes> come_;
  std::list<Leaving> leaving_;
};

/// Messages to the first process, which are of no collective.
constexpr std::uint64_t kStates = 5;
constexpr std::uint64_t kSums = 6;

/// As the program itself would end with them (cli/program.h).
enum class Status : int { wrong_result = 1, lost = 2, our_fault = 3 };

/// All processes, not this one alone.
[[noreturn]] void end_all(const std::string& message, Status status) {
  std::fprintf(stderr, "placet: %s; all ranks end with it\n", message.c_str());
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, static_cast<int>(status));
  std::terminate();
}

template <class Numbers>
class MpiTeam : public Team<Numbers> {
  using Stored = typename Numbers::Stored;

 public:
  explicit MpiTeam(TeamWork<Numbers> work)
      : work_(struck(std::move(work))),
        ranks_(require_all(work_.setting.mesh.ranks())),
        own_(own_rank()),
        machine_(work_.setting, own_, *work_.plan.listings[at(work_.plan.classes[at(own_)])]),
        place_(place_of(work_.plan, own_)) {}

  /// What is wrong with one rank is the end of all.
  std::optional<std::string> run_step(int step) override {
    try {
      run_own(step);
      if (judges()) {
        hear(step);
      } else {
        tell(step);
      }
    } catch (const InputError& error) {
      end_all(error.what(), Status::lost);
    } catch (const std::exception& error) {
      end_all("rank " + std::to_string(own_) + ": " + error.what(), Status::our_fault);
    }
    return std::nullopt;
  }

  bool judges() const override { return own_ == 0; }
  double seconds() const override { return seconds_; }
  std::vector<Ledger> first_sent() const override { return first_sent_; }

 private:
  static TeamWork<Numbers> struck(TeamWork<Numbers> work) {
    work.setting.strike = strike_process;
    return work;
  }

  static int require_all(int ranks) {
    int begun = 0;
    MPI_Initialized(&begun);
    ensure(begun != 0, "a session of MPI is there");
    const int there = process_count();
    if (there != ranks) {
      throw InputError(
          {.where = "--ranks mpi",
           .value = std::to_string(there) + (there == 1 ? " process" : " processes"),
           .problem = "started, but the program has " + std::to_string(ranks) + " ranks",
           .allowed = "mpirun -n " + std::to_string(ranks) + " placet run ..."});
    }
    const int failed = first_that_failed(false);
    if (failed == there) return ranks;
    throw InputError({.where = "--ranks mpi",
                      .value = "rank " + std::to_string(failed),
                      .problem = "cannot begin, so that none does"});
  }

  void run_own(int step) {
    work_.draw_inputs(step);
    work_.prepare(step, own_);
    load(machine_, place_, work_.found);
    std::optional<std::string> problem;
    if (judges()) problem = work_.train_alone(step);
    const Stopwatch watch;
    if (!problem) problem = run_alone(machine_, step, work_.order, communicator_);
    seconds_ = watch.seconds();
    if (problem) end_all(*problem, Status::wrong_result);
    save(machine_, place_, work_.found);
  }

  void tell(int step) {
    const Label label{.group = kStates, .meeting = static_cast<std::uint64_t>(step)};
    communicator_.send(0, label, packed(taken(work_.found, reported(work_.plan, own_))), {});
    if (std::exchange(told_, true)) return;
    communicator_.send(0, {.group = kSums}, bytes_of(communicator_.ledger), {});
  }

  void hear(int step) {
    const Label label{.group = kStates, .meeting = static_cast<std::uint64_t>(step)};
    if (first_sent_.empty()) first_sent_.push_back(communicator_.ledger);
    for (int r = 1; r < ranks_; ++r) {
      put_back(work_.found, reported(work_.plan, r), unpacked<Stored>(awaited(r, label)));
    }
    while (static_cast<int>(first_sent_.size()) < ranks_) {
      const int next = static_cast<int>(first_sent_.size());
      first_sent_.push_back(ledger_from(awaited(next, {.group = kSums})));
    }
  }

  Bytes awaited(int from, const Label& label) {
    while (true) {
      if (auto bytes = communicator_.receive(from, label)) return *std::move(bytes);
      communicator_.wait();
    }
  }

  TeamWork<Numbers> work_;
  int ranks_;
  int own_;
  MpiCommunicator communicator_;
  RankMachine<Numbers> machine_;
  RankPlace place_;
  std::vector<Ledger> first_sent_;
  double seconds_ = 0;  // of this rank, which ends with the last that it waits for
  bool told_ = false;
};

}  // namespace

MpiSession::MpiSession() { MPI_Init(nullptr, nullptr); }
/// Those that go on to train wait for all others to say that they do.
MpiSession::~MpiSession() {
  first_that_failed(false);
  MPI_Finalize();
}
bool MpiSession::is_first() const { return own_rank() == 0; }
bool MpiSession::tells_failure() const {
  const int failed = first_that_failed(true);
  return own_rank() == (failed < process_count() ? failed : 0);
}

template <class Numbers>
std::unique_ptr<Team<Numbers>> mpi_team(TeamWork<Numbers> work) {
  return std::make_unique<MpiTeam<Numbers>>(std::move(work));
}

template std::unique_ptr<Team<CanonicalNumbers>> mpi_team(TeamWork<CanonicalNumbers>);
template std::unique_ptr<Team<PlainNumbers<float>>> mpi_team(TeamWork<PlainNumbers<float>>);
template std::unique_ptr<Team<PlainNumbers<double>>> mpi_team(TeamWork<PlainNumbers<double>>);

}  // namespace placet::execute
