#include "report/judged.h"

#include <gtest/gtest.h>

#include "report/hand_made.h"

namespace placet {
namespace {

TEST(VerdictTest, SaysHowMuchAndOfWhat) {
  Derivation d = hand_made().derivation;
  EXPECT_TRUE(is_good(d));
  EXPECT_EQ(verdict_of(d), "fits: 45.0 GB of 80.0 GB per device (56 %)");
  d.memory[0].reserved = gigabytes(100);
  d.fit = FitGrade::too_large;
  EXPECT_FALSE(is_good(d));
  EXPECT_EQ(verdict_of(d), "does not fit: 100 GB of 80.0 GB per device (125 %), 20.0 GB too much");
}

TEST(VerdictTest, ATightJobRunsAndSaysWhyItIsTight) {
  Derivation d = hand_made().derivation;
  d.memory[0].reserved = gigabytes(77);
  d.memory[0].outside = gigabytes(1);
  d.fit = FitGrade::tight;
  EXPECT_TRUE(is_good(d));
  EXPECT_EQ(verdict_of(d), "tight: 78.0 GB of 80.0 GB per device (98 %), less than 5 % is left");
  d.memory[0].gives_back = true;
  EXPECT_EQ(verdict_of(d),
            "tight: 78.0 GB of 80.0 GB per device (98 %), it runs only because the allocator gives "
            "cached blocks back when the device is full");
}

TEST(VerdictTest, ABrokenRuleIsNotGood) {
  Derivation d = hand_made().derivation;
  d.findings.push_back({.rule = "r", .severity = Severity::warning});
  EXPECT_TRUE(is_good(d)) << "a warning is no judgement";
  d.findings.push_back({.rule = "r", .severity = Severity::error});
  EXPECT_FALSE(is_good(d));
  EXPECT_EQ(verdict_of(d), "fits: 45.0 GB of 80.0 GB per device (56 %); 1 rule broken");
}

TEST(VerdictTest, WithoutAClusterNothingIsJudged) {
  Derivation d = hand_made().derivation;
  d.capacity = Bytes();
  EXPECT_EQ(verdict_of(d), "needs 45.0 GB per device; no cluster was given to judge it against");
}

TEST(VerdictTest, TheHostMayBeWhatIsFull) {
  Derivation d = hand_made().derivation;
  d.fit = FitGrade::too_large;
  d.host_used = gigabytes(600);
  d.host_capacity = gigabytes(512);
  EXPECT_EQ(verdict_of(d), "does not fit: a host needs 600 GB of 512 GB");
}

TEST(AxesTest, StridesNamesAndLinks) {
  const Job job = *hand_made_job();
  EXPECT_EQ(stride_of(job.placement, 0), 4);
  EXPECT_EQ(stride_of(job.placement, 1), 1);
  EXPECT_EQ(axis_names(job, axis_bit(0) | axis_bit(1)), (std::vector<std::string>{"pp", "dp"}));
  EXPECT_EQ(link_of_axis(job, 0), "inside");
}

// 32 samples over dp = 4 with micro-batches of 2.
TEST(AxesTest, MicroBatches) {
  Job job = *hand_made().job;
  EXPECT_EQ(micro_batches_of(job), 4);
  job.batch.global = 33;
  EXPECT_EQ(micro_batches_of(job), 0);
}

TEST(LinesTest, EqualTermsAreOneLine) {
  Judged judged = hand_made();
  CommunicationClass& communication = judged.derivation.communication[0];
  communication.terms.push_back(communication.terms[0]);
  CommunicationTerm small = communication.terms[0];
  small.collective = Collective::all_gather;
  small.sent = gigabytes(1);
  communication.terms.insert(communication.terms.begin(), small);
  const auto lines = lines_of(*judged.job, communication);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].collective, Collective::reduce_scatter) << "the most bytes first";
  EXPECT_EQ(lines[0].sent, gigabytes(24));
  EXPECT_EQ(lines[0].calls, 4);
}

}  // namespace
}  // namespace placet
