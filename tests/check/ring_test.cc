// Keys and values round a ring: right on rings of two, three and four, and each mistake on one
// found by the checker and by the run of all ranks.
#include <gtest/gtest.h>

#include <string>

#include "algebra/verify.h"
#include "check/both_judges.h"
#include "check/check.h"
#include "lower/catalogue_jobs.h"
#include "lower/lower.h"
#include "lower/small.h"
#include "program/fault.h"
#include "program/text.h"

namespace placet::testing {
namespace {

/// Without a limit of the norm, through which every gradient reaches every parameter.
Job ring_job(const CatalogueJob& what) {
  Job job = load(what);
  job.clips_by_global_norm = false;
  return job;
}

const Program& ring_of_three() {
  static const Program program = lower_small(ring_job({"llama-3.1-8b", "cp=3:ring"}));
  return program;
}

class RightRing : public ::testing::TestWithParam<CatalogueJob> {};

TEST_P(RightRing, IsTheTrainingOfOneDevice) { EXPECT_EQ(fault_of(GetParam()), ""); }

INSTANTIATE_TEST_SUITE_P(OfTheCatalogue, RightRing,
                         ::testing::Values(CatalogueJob{"llama-3.1-8b", "cp=2:ring"},
                                           CatalogueJob{"llama-3.1-8b", "cp=3:ring"},
                                           CatalogueJob{"llama-3.1-8b", "cp=4:ring tp=2:tp+sp"},
                                           CatalogueJob{"gpt2", "cp=3:ring", "selective=core_attn"},
                                           CatalogueJob{"gpt2", "pp=2:1f1b cp=3:ring", "full"},
                                           CatalogueJob{"llama-3.1-8b",
                                                        "pp=2:zb-h1 cp=2:ring+zero3"},
                                           CatalogueJob{"llama-3.1-8b", "cp=2:ring sp=2:heads"},
                                           CatalogueJob{"llama-3.1-8b", "cp=3[3,2,1]:ring"}));

// 1024 tokens over 3 devices are 342, 341 and 341: pieces on their way have other lengths.
TEST(RingTest, PiecesMayHaveOtherLengths) {
  const Job job = ring_job({"llama-3.1-8b", "cp=3:ring"});
  EXPECT_EQ(job.batch.sequence % 3, 1);
  EXPECT_TRUE(check(lower(job)).equivalent);
}

class RingMistake : public ::testing::TestWithParam<std::string> {};

TEST_P(RingMistake, IsFoundFromBothSides) {
  const Program mutant = with_faults(ring_of_three(), {fault_from(GetParam())});
  EXPECT_FALSE(check(mutant).equivalent);
  EXPECT_FALSE(verify(mutant).equal);
}

INSTANTIATE_TEST_SUITE_P(
    RingMistakes, RingMistake,
    ::testing::Values(
        "delete(permute, nth=1)",                  // a piece is not sent
        "delete(permute, phase=backward, nth=4)",  // gradients are not sent home
        "shift_slice(permute, by=1, nth=1)",       // to the wrong neighbour
        "shift_slice(permute, by=1, phase=backward, nth=3)",
        "shift_slice(permute, by=-1)",                      // nothing is passed on
        "drop_position(compute, tensor=*logsumexp*)",       // every piece taken for the first
        "delete(accumulate, tensor=*context.n, nth=1)",     // a piece is left out
        "duplicate(accumulate, tensor=*context.n, nth=2)",  // and counted twice
        "delete(accumulate, tensor=d.attention.v, phase=backward, nth=1)",
        "duplicate(accumulate, tensor=d.attention.k*, phase=backward, nth=1)"));

/// What the checker says of the first finding of a mutant.
std::string told_of(const std::string& fault) {
  const Verdict verdict = check(with_faults(ring_of_three(), {fault_from(fault)}));
  return verdict.findings.empty() ? "" : verdict.findings[0].difference;
}

// The first addition of the denominator is that of the piece of the next device.
TEST(RingTest, APieceThatIsLeftOutIsNamed) {
  EXPECT_EQ(told_of("delete(accumulate, tensor=*logsumexp, nth=1, layer=1)"),
            "the part of the device 1 place further on along cp is missing");
  EXPECT_EQ(told_of("duplicate(accumulate, tensor=*logsumexp, nth=2, layer=1)"),
            "the part of the device 2 places further on along cp is counted 2 times");
  // What is left out is what round 2 gives for keys p, on device p - 2, one place further on.
  EXPECT_EQ(told_of("delete(accumulate, tensor=d.attention.v.piece*, nth=1, layer=1)"),
            "the part of the device 1 place further on along cp is missing");
}

// Keys behind a device's queries are hidden: what becomes of their pieces there changes nothing,
// and of all others everything.
TEST(RingTest, WhatAMaskHidesOnADeviceIsNotWrong) {
  for (const std::string fault :
       {"rescale(permute, by=2", "drop_position(compute, tensor=*core*"}) {
    int equal = 0;
    int wrong = 0;
    for (const std::string rank : {"0", "1", "2"}) {
      const auto counted = equal_and_wrong(ring_of_three(), fault + ", layer=1, rank=" + rank);
      equal += counted.first;
      wrong += counted.second;
    }
    EXPECT_GT(equal, 0) << fault;
    EXPECT_GT(wrong, 0) << fault;
  }
}

TEST(RingTest, ProgramsReadBackAsTheSame) {
  EXPECT_EQ(program_from(to_text(ring_of_three()), "ring"), ring_of_three());
}

}  // namespace
}  // namespace placet::testing
