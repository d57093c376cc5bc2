// Each condition broken once, and the same verdict whatever things are called.
#include "check/check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "check/disguise.h"
#include "lower/catalogue_jobs.h"
#include "lower/lower.h"
#include "lower/small.h"
#include "program/fault.h"
#include "program/text.h"
#include "program/wellformed.h"
#include "units/error.h"

namespace placet::testing {
namespace {

const Program& small_program() {
  static const Program program = lower_small(load({"gpt2", "dp=2:zero1 tp=2:tp+sp"}));
  return program;
}

Program with(const std::string& fault) { return with_faults(small_program(), {fault_from(fault)}); }

std::vector<Condition> broken_by(const std::string& fault) {
  std::vector<Condition> out;
  for (const CheckFinding& f : check(with(fault)).findings) {
    if (std::ranges::find(out, f.condition) == out.end()) out.push_back(f.condition);
  }
  return out;
}

// Without a limit of the norm, through which every gradient reaches every parameter.
TEST(CheckTest, AMissingShareBreaksGradientIntegrity) {
  Job job = load({"gpt2", "dp=2:zero1 tp=2:tp+sp"});
  job.clips_by_global_norm = false;
  const Program program = lower_small(job);
  const Verdict verdict =
      check(with_faults(program, {fault_from("delete(accumulate, layer=1, nth=1)")}));
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_EQ(verdict.findings[0].condition, Condition::gradient_integrity);
}

TEST(CheckTest, ARightProgramBreaksNothing) {
  const Verdict verdict = check(small_program());
  EXPECT_TRUE(verdict.equivalent);
  EXPECT_EQ(verdict.steps, 2);
  EXPECT_EQ(verdict.devices, 4);
}

// The gradient of a key of which several devices have parts is a sum of two terms, both incomplete
// in the same way: twice one of them is another sum.
TEST(CheckTest, OneOfTwoIncompleteTermsHasItsFactor) {
  Job job = load({"qwen3-8b", "tp=16:tp"});
  job.clips_by_global_norm = false;
  const Program right = lower_small(job);
  EXPECT_TRUE(check(right).equivalent);
  const Fault one = fault_from("rescale(accumulate, tensor=d.attention.k.2, by=2)");
  const Verdict verdict = check(with_faults(right, {one}));
  EXPECT_FALSE(verdict.equivalent);
  EXPECT_FALSE(verdict.findings.at(0).difference.empty());
}

// Each layer doubles what it adds up: 24 layers pass 2^63, in another way than the reference.
TEST(CheckTest, AScaleThatGrowsWithEveryLayerIsAFinding) {
  Job job = load({"gpt2-medium", "dp=2:ddp"});
  job.batch.sequence = 64;
  const Program mutant = with_faults(lower(job), {fault_from("rescale(accumulate, by=2)")});
  const Verdict verdict = check(mutant);
  EXPECT_FALSE(verdict.equivalent);
  EXPECT_FALSE(verdict.holds.at(static_cast<std::size_t>(Condition::gradient_integrity)));
  EXPECT_FALSE(verdict.findings.at(0).at.empty());
  EXPECT_FALSE(is_right(mutant));
}

struct Broken {
  std::string fault;
  Condition condition;
};

class OneCondition : public ::testing::TestWithParam<Broken> {};

TEST_P(OneCondition, IsFoundUnderItsName) {
  const std::vector<Condition> broken = broken_by(GetParam().fault);
  EXPECT_NE(std::ranges::find(broken, GetParam().condition), broken.end()) << GetParam().fault;
}

INSTANTIATE_TEST_SUITE_P(
    OfTheFive, OneCondition,
    ::testing::Values(Broken{"skip_update(update, rank=0, nth=3)", Condition::state_consistency},
                      Broken{"local_norm(all_reduce)", Condition::update_integrity},
                      Broken{"wrong_key(random, nth=2)", Condition::input_integrity},
                      Broken{"drop_wait(wait)", Condition::order},
                      Broken{"local_weight(all_reduce)", Condition::gradient_integrity},
                      Broken{"substitute(accumulate, to=copy)", Condition::gradient_integrity},
                      Broken{"redim(all_gather, phase=backward, to=0, nth=1)",
                             Condition::gradient_integrity},
                      Broken{"drop_position(random, axis=tp)", Condition::input_integrity},
                      Broken{"drop_wait(wait, stream=communication)", Condition::order}));

// A sum that nothing completes is found where it is used; what made it and the last message that it
// went through are told.
TEST(CheckTest, ThePastOfAnIncompleteSumIsTold) {
  Job job = load({"gpt2", "dp=2:ddp tp=2:tp+sp"});
  job.clips_by_global_norm = false;
  const Program program = lower_small(job);
  const auto before = [&](const std::string& fault) {
    const Verdict verdict = check(with_faults(program, {fault_from(fault)}));
    return verdict.findings.empty() ? std::string() : verdict.findings.front().before;
  };
  const std::string grouped = before("regroup(all_reduce, phase=reduce, to=dp, nth=1)");
  EXPECT_TRUE(grouped.starts_with("made by compute ")) << grouped;
  EXPECT_NE(grouped.find("the last message that it went through is all_reduce gradients over dp "),
            std::string::npos)
      << grouped;
  EXPECT_TRUE(grouped.ends_with("; nothing before sums it over tp")) << grouped;
  const std::string deleted = before("delete(all_reduce, phase=reduce, nth=1)");
  EXPECT_TRUE(deleted.starts_with("made by compute ")) << deleted;
  EXPECT_EQ(deleted.find("message"), std::string::npos) << deleted;
  EXPECT_NE(deleted.find("; nothing before sums it over "), std::string::npos) << deleted;
}

// Names of parameters have "{}" in the place of the layer's number.
TEST(CheckTest, FindingsNameTheLayer) {
  for (const std::string fault :
       {"delete(accumulate, nth=2)", "rescale(compute, by=2, nth=9)", "delete(zero, nth=4)",
        "delete(all_reduce, axis=tp, phase=reduce)"}) {
    const Verdict verdict = check(with(fault));
    ASSERT_FALSE(verdict.findings.empty()) << fault;
    for (const CheckFinding& f : verdict.findings) {
      for (const std::string& text : {f.tensor, f.expected, f.found, f.difference}) {
        EXPECT_EQ(text.find("{}"), std::string::npos) << text;
      }
    }
  }
}

// The limit of the norm is wrong as well then, in every parameter; the gradient is the cause.
TEST(CheckTest, AWrongGradientIsNamedUnderALimitOfTheNorm) {
  for (const std::string fault :
       {"rescale(reduce_scatter, by=1/dp, nth=1)", "delete(all_reduce, axis=tp, phase=reduce)"}) {
    const std::vector<Condition> broken = broken_by(fault);
    EXPECT_NE(std::ranges::find(broken, Condition::gradient_integrity), broken.end()) << fault;
  }
}

std::vector<std::string> faults() {
  return {"delete(accumulate, nth=2)",
          "delete(all_reduce, rank=1)",
          "rescale(compute, by=dp, nth=9)",
          "regroup(reduce_scatter, to=tp, nth=1)",
          "add_zero(accumulate, nth=1)",
          "duplicate(zero, nth=1)",
          "drop_wait(wait, nth=1)",
          "skip_update(update, step=2, nth=1)",
          "delete(free, nth=3)",
          "early_free(free, nth=2)"};
}

// Two numberings of ranks, other names, no labels: nothing of that is evidence.
TEST(DisguiseTest, ChangesNoVerdict) {
  EXPECT_TRUE(check(disguised(small_program())).equivalent);
  for (const std::string& fault : faults()) {
    Program mutant;
    try {
      mutant = with(fault);
    } catch (const std::exception& nothing) {
      ADD_FAILURE() << nothing.what();
      continue;
    }
    const Verdict plain = check(mutant);
    const Verdict other = check(disguised(mutant));
    EXPECT_EQ(plain.equivalent, other.equivalent) << fault;
    EXPECT_EQ(plain.holds, other.holds) << fault;
  }
}

TEST(DisguiseTest, ChangesNoVerdictOnTheCatalogue) {
  for (const CatalogueJob& job : few_catalogue_jobs()) {
    EXPECT_TRUE(check(disguised(lower_small(load(job)))).equivalent)
        << job.model << " " << job.placement;
  }
}

// Programs of one job claim to be one reference, which is worked out once; that of another job is
// not taken for it.
TEST(KnownReferenceTest, ServesTheProgramsThatClaimIt) {
  const std::vector<CatalogueJob> jobs = few_catalogue_jobs();
  const auto known = known_reference(lower_small(load(jobs.front())));
  for (const CatalogueJob& job : jobs) {
    EXPECT_TRUE(is_right(lower_small(load(job)), *known)) << job.model << " " << job.placement;
  }
  const auto of_small = known_reference(small_program());
  for (const std::string& fault : faults()) {
    const Program mutant = with(fault);
    EXPECT_EQ(is_right(mutant, *of_small), check(mutant).equivalent) << fault;
  }
}

// A program with faults on some devices, in one layer and in one step is a program like others.
TEST(FaultTest, WhatItMakesPrintsAndReadsBack) {
  for (const std::string fault : {"delete(compute, rank=dp=1/tp=0, layer=1, nth=1)",
                                  "rescale(all_reduce, by=1/tp*3, step=2, nth=1)"}) {
    const Program mutant = with(fault);
    require_wellformed(mutant, {.where = "mutant"});
    EXPECT_EQ(program_from(to_text(mutant), "mutant"), mutant) << fault;
  }
}

TEST(FaultTest, RanksAreThoseOfTheProgram) {
  const Program right = small_program();
  const auto matches = [&](const std::string& rank) {
    return list_matches(right, fault_from("delete(compute, rank=" + rank + ")")).size();
  };
  EXPECT_EQ(matches("0-1"), matches("0..1"));
  EXPECT_EQ(matches("0..99"), matches("0..3"));
  for (const std::string rank : {"98..99", "3..1", "dp=7", "99"}) {
    EXPECT_THROW(matches(rank), InputError) << rank;
  }
}

// all_reduce and broadcast are both in place; reduce_scatter and slice both leave a part.
TEST(FaultTest, AKindIsSubstitutedByOneOnTheSameBuffersOnly) {
  EXPECT_FALSE(
      list_matches(small_program(), fault_from("substitute(all_reduce, to=broadcast)")).empty());
  EXPECT_FALSE(
      list_matches(small_program(), fault_from("substitute(reduce_scatter, to=slice)")).empty());
  EXPECT_TRUE(
      list_matches(small_program(), fault_from("substitute(all_gather, to=slice)")).empty());
  EXPECT_TRUE(list_matches(small_program(), fault_from("substitute(all_reduce, to=copy)")).empty());
}

TEST(FaultTest, AStreamChoosesAmongWaits) {
  const auto count = [](const std::string& fault) {
    return list_matches(small_program(), fault_from(fault)).size();
  };
  EXPECT_EQ(count("drop_wait(wait)"), count("drop_wait(wait, stream=compute)") +
                                          count("drop_wait(wait, stream=communication)"));
}

TEST(FaultTest, OneDeviceIsAClassOfItsOwn) {
  const Program mutant = with("skip_update(update, rank=dp=1/tp=0)");
  EXPECT_EQ(mutant.classes.size(), 4U);
  EXPECT_EQ(with("skip_update(update, rank=dp=1)").classes.size(), 2U);
  EXPECT_EQ(with("skip_update(update, rank=0..3)").classes.size(), 1U);
}

// 15 times: three replicas of five data ranks.
TEST(CheckTest, FactorsOfSeveralAxesAreNamed) {
  const Program right = lower(load({"gpt2", "rep=3:ddp dp=5:ddp"}));
  const Verdict verdict =
      check(with_faults(right, {fault_from("rescale(all_reduce, phase=reduce, by=15, nth=1)")}));
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_NE(verdict.findings.front().difference.find("15 times what it should be (rep*dp"),
            std::string::npos)
      << verdict.findings.front().difference;
}

// What is gathered after the update was not written: nothing of the parameter is there afterwards.
TEST(CheckTest, AParameterThatIsNotThereAfterTheStepIsNamed) {
  const Verdict verdict = check(with("delete(copy, tensor=updated.embedding.transformer.wte*)"));
  const auto lost =
      std::ranges::find(verdict.findings, Condition::state_consistency, &CheckFinding::condition);
  ASSERT_NE(lost, verdict.findings.end());
  EXPECT_EQ(lost->tensor, "transformer.wte.weight");
  EXPECT_EQ(lost->expected, "the part that it held before the step, brought up to date");
  EXPECT_EQ(lost->difference, "the device does not hold its part after the step");
}

// Sums that are missing in both blocks: whatever is wrong for it, the loss behind them too, began
// in the first one, which is unit 1 behind the embedding.
TEST(CheckTest, WhatIsWrongInEveryBlockBeganInTheFirst) {
  for (const std::string tensor : {"attention.o*", "mlp.down*"}) {
    const Verdict verdict =
        check(with("delete(reduce_scatter, phase=forward, tensor=" + tensor + ")"));
    std::vector<std::string> wrong;
    for (const CheckFinding& f : verdict.findings) {
      if (f.condition == Condition::order) continue;
      wrong.push_back(f.tensor);
      EXPECT_TRUE(f.at.ends_with("(unit 1, micro-batch 0, step 1)")) << f.tensor << ": " << f.at;
    }
    EXPECT_NE(std::ranges::find(wrong, "loss"), wrong.end()) << tensor;
  }
}

}  // namespace
}  // namespace placet::testing
