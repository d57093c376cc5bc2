// Ranks that mpirun starts. Skipped where there is no mpirun, or the program was built without MPI.
#include <nlohmann/json.hpp>

#include "program_run.h"

namespace placet {
namespace {

using Json = nlohmann::json;

const std::string kJob = "--global-batch 8 --steps 2 --json ";

Result run_over_mpi(int ranks, const std::string& arguments) {
  return run("run " + arguments + " --ranks mpi",
             "mpirun --allow-run-as-root --oversubscribe -n " + std::to_string(ranks));
}

class Mpi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("mpirun --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no mpirun";
    if (!PLACET_HAS_MPI) GTEST_SKIP() << "this build has no MPI";
  }
};

TEST_F(Mpi, RanksHaveTheDigestsOfVirtualOnes) {
  for (const std::string placement :
       {"dp=2:zero3 tp=2:tp+sp", "pp=2:1f1b dp=2:zero1", "cp=2:ring tp=2:tp"}) {
    const std::string job = "llama-3.1-8b --placement \"" + placement + "\" " + kJob;
    const Result one = run("run " + job);
    ASSERT_EQ(one.status, 0) << one.err;
    const Result many = run_over_mpi(4, job);
    ASSERT_EQ(many.status, 0) << many.err;
    const Json expected = Json::parse(one.out);
    const Json found = Json::parse(many.out);
    EXPECT_EQ(found["digest"], expected["digest"]) << placement;
    EXPECT_EQ(found["sent"], expected["sent"]) << placement;
    EXPECT_EQ(found["rank_kind"], "mpi");
  }
}

TEST_F(Mpi, OtherNumbersOfProcessesAreRefusedByOne) {
  const Result result = run_over_mpi(3, "gpt2 --placement \"dp=2:zero3 tp=2:tp\" --global-batch 4");
  EXPECT_EQ(result.status, 2);
  const std::string said =
      "placet: --ranks mpi: '3 processes' started, but the program has 4 ranks";
  EXPECT_TRUE(has(result.err, said)) << result.err;
  EXPECT_EQ(result.err.find(said), result.err.rfind(said));
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST_F(Mpi, WrongInputIsSaidOnce) {
  const Result result = run_over_mpi(2, "--resume /nowhere/at/all");
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(count_of(result.err, "placet: /nowhere/at/all: is"), 1U) << result.err;
}

TEST_F(Mpi, WhatIsNotTrainedIsPrintedOnce) {
  const std::string job =
      "gpt2 --placement dp=2:ddp --global-batch 4 --fault \"delete(all_reduce)\" ";
  const Result listed = run_over_mpi(2, job + "--list-faults");
  EXPECT_EQ(listed.status, 0) << listed.err;
  EXPECT_EQ(listed.out, run("run " + job + "--list-faults").out);
  const Result stuck = run_over_mpi(2,
                                    "gpt2 --placement dp=2:ddp --global-batch 4 --fault "
                                    "\"delete(alloc)\"");
  EXPECT_EQ(stuck.status, 1) << stuck.err;
  EXPECT_EQ(count_of(stuck.out, "Stuck"), 1U) << stuck.out;
}

// The first process alone saves: what only it finds wrong ends all.
TEST_F(Mpi, WhatOneProcessCannotDoEndsAll) {
  const Result result = run_over_mpi(
      2, "gpt2 --placement dp=2:ddp --global-batch 4 --steps 1 --save /nowhere/at/all");
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(count_of(result.err, "placet: --save: '/nowhere/at/all'"), 1U) << result.err;
}

TEST_F(Mpi, ARankThatFailsOrIsKilledEndsAll) {
  const std::string job = "gpt2 --placement \"dp=2:zero3 tp=2:tp\" --global-batch 4 --fault ";
  const Result failed = run_over_mpi(4, job + "\"fail(rank=2)\"");
  EXPECT_EQ(failed.status, 2);
  EXPECT_TRUE(has(failed.err, "placet: rank 2: failed in step 1, as asked for")) << failed.err;
  EXPECT_EQ(failed.out, "");
  const Result killed = run_over_mpi(4, job + "\"kill(rank=1)\"");
  EXPECT_NE(killed.status, 0);
  EXPECT_TRUE(has(killed.err, "rank 1")) << killed.err;
  EXPECT_EQ(killed.out, "");
}

}  // namespace
}  // namespace placet
