// All ranks in one process: what a rank sends is there at once, and which queue of which rank goes
// on is decided here.
#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "execute/team.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::execute {
namespace {

/// Messages that have not been taken, by receiver.
using Letters = std::map<std::pair<int, Label>, Bytes>;  // by sender
struct Office {
  std::vector<Letters> boxes;
};

class VirtualCommunicator : public Communicator {
 public:
  VirtualCommunicator(int own, Office& office) : own_(own), office_(office) {}

  std::optional<Bytes> receive(int from, const Label& label) override {
    Letters& box = office_.boxes[at(own_)];
    const auto found = box.find({from, label});
    if (found == box.end()) return std::nullopt;
    Bytes bytes = std::move(found->second);
    box.erase(found);
    return bytes;
  }
  void wait() override {}

 protected:
  void transmit(int to, const Label& label, Bytes bytes) override {
    office_.boxes.at(at(to)).emplace(std::pair(own_, label), std::move(bytes));
  }

 private:
  int own_;
  Office& office_;
};

/// In one process nobody can be killed alone.
void strike_here(const RankFault& fault) {
  if (fault.kind == RankFault::Kind::slow) {
    std::this_thread::sleep_for(std::chrono::duration<double>(fault.seconds));
    return;
  }
  std::string how = "failed";
  if (fault.kind == RankFault::Kind::kill) how = "was killed";
  if (fault.kind == RankFault::Kind::stall) how = "stopped";
  throw InputError({.where = "rank " + std::to_string(fault.rank),
                    .problem = how + " in step " + std::to_string(fault.step) + ", as asked for"});
}

template <class Numbers>
class VirtualTeam : public Team<Numbers> {
 public:
  explicit VirtualTeam(TeamWork<Numbers> work)
      : work_(std::move(work)), drawn_(work_.order.seed, work_.setting.mesh.ranks()) {
    work_.setting.strike = strike_here;
    const int count = work_.setting.mesh.ranks();
    office_.boxes.resize(at(count));
    for (int r = 0; r < count; ++r) {
      const ranks::Listing& listing = *work_.plan.listings[at(work_.plan.classes[at(r)])];
      places_.push_back(place_of(work_.plan, r));
      ranks_.push_back(std::make_unique<RankMachine<Numbers>>(work_.setting, r, listing));
      communicators_.push_back(std::make_unique<VirtualCommunicator>(r, office_));
    }
  }

  std::optional<std::string> run_step(int step) override {
    work_.draw_inputs(step);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      work_.prepare(step, static_cast<int>(r));
      load(*ranks_[r], places_[r], work_.found);
      ranks_[r]->begin_step(step);
    }
    if (auto problem = work_.train_alone(step)) return problem;
    drawn_.begin_step(instructions());
    const Stopwatch watch;
    if (auto problem = run_queues(step)) return problem;
    seconds_ = watch.seconds();
    for (std::size_t r = 0; r < ranks_.size(); ++r) save(*ranks_[r], places_[r], work_.found);
    if (first_sent_.empty()) {
      for (const auto& one : communicators_) first_sent_.push_back(one->ledger);
    }
    return std::nullopt;
  }

  double seconds() const override { return seconds_; }
  std::vector<Ledger> first_sent() const override { return first_sent_; }

 private:
  std::size_t instructions() const {
    std::size_t all = 0;
    for (const auto& rank : ranks_) all += rank->left();
    return all;
  }

  std::optional<std::string> run_queues(int step) {
    const bool drawn = work_.order.kind == QueueOrder::Kind::seeded;
    while (true) {
      Progress most = Progress::none;
      if (auto problem = drawn ? pass_drawn(step, most) : pass(step, most)) return problem;
      if (most == Progress::none) return end_of(step);
    }
  }

  /// One instruction of each rank that can go on with a queue of the first kind; if none can, of
  /// the next kind.
  std::optional<std::string> pass(int step, Progress& most) {
    for (const Stream stream : queues_in_order(work_.order.kind)) {
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (auto problem = go_on(step, r, stream, most)) return problem;
      }
      if (most != Progress::none) return std::nullopt;
    }
    return std::nullopt;
  }

  /// One instruction of the first queue that can go on.
  std::optional<std::string> pass_drawn(int step, Progress& most) {
    const std::vector<QueueOfRank>& queues = drawn_.queues();
    for (std::size_t k = 0; k < queues.size() && most == Progress::none; ++k) {
      if (auto problem = go_on(step, at(queues[k].rank), queues[k].stream, most)) return problem;
      if (most == Progress::done) drawn_.went_on(k);
    }
    return std::nullopt;
  }

  std::optional<std::string> go_on(int step, std::size_t rank, Stream stream, Progress& most) {
    const int instruction = ranks_[rank]->next_of(stream);
    const Progress progress = ranks_[rank]->advance(stream, *communicators_[rank]);
    if (progress == Progress::out_of_range) {
      return out_of_range_text(step, static_cast<int>(rank), instruction);
    }
    most = std::max(most, progress);
    return std::nullopt;
  }

  /// None can go on: all are done, or some wait for what never comes.
  std::optional<std::string> end_of(int step) const {
    for (const auto& rank : ranks_) {
      if (rank->is_done()) continue;
      return "step " + std::to_string(step + 1) + ", rank " + std::to_string(rank->rank()) +
             ": its queues wait for each other";
    }
    return std::nullopt;
  }

  TeamWork<Numbers> work_;
  DrawnOrder drawn_;
  Office office_;
  std::vector<RankPlace> places_;
  std::vector<std::unique_ptr<RankMachine<Numbers>>> ranks_;
  std::vector<std::unique_ptr<VirtualCommunicator>> communicators_;
  std::vector<Ledger> first_sent_;
  double seconds_ = 0;
};

}  // namespace

template <class Numbers>
std::unique_ptr<Team<Numbers>> virtual_team(TeamWork<Numbers> work) {
  return std::make_unique<VirtualTeam<Numbers>>(std::move(work));
}

template std::unique_ptr<Team<CanonicalNumbers>> virtual_team(TeamWork<CanonicalNumbers>);
template std::unique_ptr<Team<PlainNumbers<float>>> virtual_team(TeamWork<PlainNumbers<float>>);
template std::unique_ptr<Team<PlainNumbers<double>>> virtual_team(TeamWork<PlainNumbers<double>>);

}  // namespace placet::execute
