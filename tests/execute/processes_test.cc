// Ranks in processes of their own: the same bits and bytes as virtual ones, and one message within
// seconds whatever happens to one of them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <ostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "execute/ring_communicator.h"
#include "execute/run.h"
#include "lower/catalogue_jobs.h"
#include "lower/small.h"
#include "units/error.h"

namespace placet::testing {
namespace {

RealRun run_as(const Program& program, RankKind kind, Arithmetic arithmetic) {
  return run(program, {.steps = 2,
                       .arithmetic = arithmetic,
                       .rank_kind = kind,
                       .order = {.kind = QueueOrder::Kind::early}});
}

bool has_children() { return waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD; }

struct JobOfRanks {
  CatalogueJob job;
  int ranks = 0;
};
void PrintTo(const JobOfRanks& what, std::ostream* out) { PrintTo(what.job, out); }

class Processes : public ::testing::TestWithParam<JobOfRanks> {};

TEST_P(Processes, AreEqualToVirtualRanks) {
  const Program program = lower_small(load(GetParam().job));
  for (const Arithmetic arithmetic : {Arithmetic::canonical, Arithmetic::declared}) {
    const RealRun expected = run_as(program, RankKind::in_one_process, arithmetic);
    const RealRun found = run_as(program, RankKind::in_processes, arithmetic);
    EXPECT_TRUE(found.equal) << found.stuck.value_or("");
    EXPECT_EQ(found.ranks, GetParam().ranks);
    EXPECT_EQ(found.compared, expected.compared);
    EXPECT_EQ(found.differing, expected.differing);
    EXPECT_EQ(found.differences, expected.differences);
    EXPECT_EQ(found.digest, expected.digest);
    EXPECT_EQ(found.sent, expected.sent);
    for (std::size_t k = 0; k < found.steps.size(); ++k) {
      EXPECT_EQ(found.steps[k].ranks, expected.steps[k].ranks);
    }
    EXPECT_FALSE(has_children());
  }
}

INSTANTIATE_TEST_SUITE_P(
    OfTheCatalogue, Processes,
    ::testing::Values(JobOfRanks{{"gpt2", "dp=2:ddp"}, 2}, JobOfRanks{{"gpt2", "dp=2:zero3"}, 2},
                      JobOfRanks{{"gpt2", "tp=2:tp+sp"}, 2},
                      JobOfRanks{{"llama-3.1-8b", "pp=2:1f1b dp=2:zero3"}, 4},
                      JobOfRanks{{"mixtral-8x7b", "dp=2:zero1 ep=2:ep+zero1"}, 4},
                      JobOfRanks{{"llama-3.1-8b", "cp=2:ring tp=2:tp+sp"}, 4},
                      JobOfRanks{{"gpt2", "pp=2:1f1b dp=2:zero2 tp=2:tp+sp"}, 8}));

/// What a run says that cannot be done, and after how many seconds.
struct Ending {
  std::string message;
  double seconds = 0;
};

Ending ending_with(std::vector<RankFault> faults) {
  const Program program = lower_small(load({"gpt2", "dp=2:zero3 tp=2:tp"}));
  const auto begin = std::chrono::steady_clock::now();
  Ending ending;
  try {
    const RealRun found =
        run(program,
            {.steps = 3, .rank_kind = RankKind::in_processes, .rank_faults = std::move(faults)});
    ending.message = found.stuck.value_or("nothing");
  } catch (const InputError& error) {
    ending.message = error.what();
  }
  const std::chrono::duration<double> lasted = std::chrono::steady_clock::now() - begin;
  ending.seconds = lasted.count();
  return ending;
}

TEST(LostRanks, EndAllWithTheirMessage) {
  struct Case {
    RankFault::Kind kind;
    const char* message;
  };
  for (const auto& [kind, message] :
       {Case{RankFault::Kind::kill, "rank 2: was ended by signal 9"},
        Case{RankFault::Kind::fail, "rank 2: failed in step 2, as asked for"},
        Case{RankFault::Kind::stall, "rank 2: has been stopped for 5 s"}}) {
    const Ending ending = ending_with({{.kind = kind, .rank = 2, .step = 2}});
    EXPECT_NE(ending.message.find(message), std::string::npos) << ending.message;
    EXPECT_LT(ending.seconds, 10) << message;
    EXPECT_FALSE(has_children()) << message;
  }
}

/// The processes whose parent this one is, as the system lists them.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text;
    std::getline(file, text);
    std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
    char state = 0;
    pid_t parent = 0;
    if (fields >> state >> parent && parent == getpid()) found.push_back(std::stoi(name));
  }
  std::ranges::sort(found);
  return found;
}

// Whoever starts this process may have set that it is not told how its children end.
TEST(LostRanks, AreNoticedWhereEndsOfChildrenAreIgnored) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const Ending ending = ending_with({{.kind = RankFault::Kind::kill, .rank = 2, .step = 2}});
  const Ending whole = ending_with({});
  EXPECT_EQ(std::signal(SIGCHLD, before), SIG_IGN);
  EXPECT_NE(ending.message.find("rank 2: was ended by signal 9"), std::string::npos)
      << ending.message;
  EXPECT_EQ(whole.message, "nothing");
}

TEST(SharedRings, WithoutMemoryAreRefused) {
  EXPECT_THROW(execute::SharedRings(200'000), InputError);  // 2.6 PB: more than addresses are long
}

// A message that was taken in while another was asked for is no reason to sleep.
TEST(RingCommunicator, DoesNotSleepOverWhatHasCome) {
  execute::SharedRings rings(2);
  execute::RingCommunicator one(0, 2, rings, [] {});
  execute::RingCommunicator other(1, 2, rings, [] {});
  double least = std::numeric_limits<double>::infinity();
  for (std::uint64_t meeting = 0; meeting < 5; ++meeting) {
    const execute::Label label{.group = 1, .meeting = meeting};
    one.send(1, label, execute::Bytes(8), {});
    EXPECT_FALSE(other.receive(0, {.group = 2}).has_value());
    const auto begin = std::chrono::steady_clock::now();
    other.wait();
    const std::chrono::duration<double> slept = std::chrono::steady_clock::now() - begin;
    least = std::min(least, slept.count());
    EXPECT_TRUE(other.receive(0, label).has_value());
  }
  EXPECT_LT(least, 0.025);  // a sleep lasts 50 ms
}

// Killed from outside, while one rests in the middle of a step and the others wait for it. The one
// device may be at its end by then: four processes are the ranks at least.
TEST(LostRanks, ThatOthersKillAreNoticed) {
  std::atomic<bool> over = false;
  std::thread killer([&over] {
    std::vector<pid_t> found;
    while (!over && found.size() < 4) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      found = children();
    }
    if (found.size() >= 4) kill(found[1], SIGKILL);
  });
  const Ending ending = ending_with({{.kind = RankFault::Kind::slow, .rank = 0, .seconds = 1}});
  over = true;
  killer.join();
  EXPECT_NE(ending.message.find("was ended by signal 9"), std::string::npos) << ending.message;
  EXPECT_LT(ending.seconds, 10);
  EXPECT_FALSE(has_children());
}

TEST(FaultyRanks, AreSeenOrWaitedFor) {
  const Program program = lower_small(load({"gpt2", "dp=2:ddp"}));
  for (const RankKind kind : {RankKind::in_one_process, RankKind::in_processes}) {
    const auto with = [&](RankFault fault) {
      return run(program, {.steps = 2,
                           .rank_kind = kind,
                           .order = {.kind = QueueOrder::Kind::early},
                           .rank_faults = {fault}});
    };
    const RealRun corrupt = with({.kind = RankFault::Kind::corrupt, .rank = 1});
    EXPECT_FALSE(corrupt.equal);
    EXPECT_FALSE(corrupt.differences.empty());
    EXPECT_TRUE(with({.kind = RankFault::Kind::slow, .rank = 1, .seconds = 0.1}).equal);
  }
}

// Messages between stages too: the second one sends gradients back in the middle of its step.
TEST(FaultyRanks, SpoilWhatIsSentBetweenStages) {
  const Program program = lower_small(load({"gpt2", "pp=2:1f1b"}));
  const RealRun found =
      run(program, {.steps = 1,
                    .order = {.kind = QueueOrder::Kind::early},
                    .rank_faults = {{.kind = RankFault::Kind::corrupt, .rank = 1}}});
  EXPECT_FALSE(found.equal);
}

TEST(FaultyRanks, AreOfAStepOfTheRun) {
  const Ending ending = ending_with({{.kind = RankFault::Kind::kill, .rank = 0, .step = 50}});
  EXPECT_EQ(ending.message, "--fault: 'step=50' is no step of the run; expected 1 to 3");
}

TEST(RankFaults, AreReadOrRefused) {
  EXPECT_EQ(rank_fault_from("kill(rank=2, step=3)"),
            (RankFault{.kind = RankFault::Kind::kill, .rank = 2, .step = 3}));
  EXPECT_EQ(rank_fault_from("slow( rank=1,seconds=0.5 )"),
            (RankFault{.kind = RankFault::Kind::slow, .rank = 1, .seconds = 0.5}));
  EXPECT_EQ(rank_fault_from("delete(all_reduce)"), std::nullopt);
  // Nearer to a fault of the program than to `stall`.
  EXPECT_EQ(rank_fault_from("stalee(optimizer)"), std::nullopt);
  for (const char* wrong : {"kill", "kill()", "kill(rank=x)", "kill(rank=1, seconds=2)",
                            "slow(rank=1, seconds=-1)", "stall(rnk=1)"}) {
    EXPECT_THROW(rank_fault_from(wrong), InputError) << wrong;
  }
}

TEST(QueueOrders, AreReadOrRefused) {
  EXPECT_EQ(queue_order_from("seeded=7"),
            (QueueOrder{.kind = QueueOrder::Kind::seeded, .seed = 7}));
  for (const char* word : {"early", "late", "listed", "seeded=3"}) {
    EXPECT_EQ(text_of(queue_order_from(word)), word);
  }
  for (const char* wrong : {"", "erly", "seeded=", "seeded=x", "early=1"}) {
    EXPECT_THROW(queue_order_from(wrong), InputError) << wrong;
  }
}

}  // namespace
}  // namespace placet::testing
