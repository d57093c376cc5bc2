// Runs of a procedure are worked out once for equal contents. A program without procedures has
// nothing to repeat, and must get the same verdict.
#include <gtest/gtest.h>

#include <string>

#include "check/check.h"
#include "check/opened.h"
#include "lower/catalogue_jobs.h"
#include "lower/small.h"
#include "program/fault.h"
#include "units/error.h"

namespace placet::testing {
namespace {

/// The first finding without its place, which names units and micro-batches of calls. How many
/// there are depends on how many places have different names.
std::string told(const Verdict& verdict) {
  if (verdict.findings.empty()) return "";
  const CheckFinding& f = verdict.findings.front();
  return std::string(name_of(f.condition)) + " " + f.tensor + " " + f.ranks + ": " + f.difference;
}

/// But for the tensor that is told first, of several.
void expect_same_judgement(const Program& program, const Verdict& own, const Verdict& other,
                           const std::string& what) {
  EXPECT_EQ(own.equivalent, other.equivalent) << what;
  EXPECT_EQ(own.holds, other.holds) << what;
  EXPECT_EQ(own.steps, other.steps) << what;
  EXPECT_EQ(own.labels.size(), other.labels.size()) << what;
  EXPECT_EQ(own.equivalent, is_right(program)) << what;
}

void expect_same_verdict(const Program& program, const std::string& what) {
  const Verdict own = check(program);
  const Verdict other = check(opened(program));
  expect_same_judgement(program, own, other, what);
  EXPECT_EQ(told(own), told(other)) << what;
}

class WithoutProcedures : public ::testing::TestWithParam<CatalogueJob> {};

TEST_P(WithoutProcedures, TheVerdictIsTheSame) {
  const Program program = lower_small(load(GetParam()));
  expect_same_verdict(program, "the program itself");
  int broken = 0;
  for (const char* text :
       {"delete(accumulate, layer=1, nth=1)", "delete(accumulate, step=2)", "delete(all_reduce)",
        "duplicate(accumulate, nth=2)", "rescale(scale, by=2)", "delete(zero)",
        "rescale(accumulate, by=1/m, nth=3)", "delete(free, nth=2)", "duplicate(compute, nth=3)",
        "delete(alloc, nth=3)", "rescale(compute, by=2, rank=0, nth=5)",
        "move(accumulate, by=-3, nth=2)", "rekey(random)"}) {
    try {
      const Program mutant = with_faults(program, {fault_from(text)});
      if (!check(mutant).equivalent) ++broken;
      expect_same_verdict(mutant, text);
    } catch (const InputError&) {
      continue;  // a fault that this program has no place for
    }
  }
  EXPECT_GE(broken, 4);
}

// Twelve micro-batches, whose rounds are loops; and the same instructions written out.
class WithoutLoops : public ::testing::TestWithParam<CatalogueJob> {};

TEST_P(WithoutLoops, TheVerdictIsTheSame) {
  const Program program = with_long_pipeline(GetParam());
  expect_same_verdict(program, "the program itself");
  int broken = 0;
  for (const char* text :
       {"delete(send, microbatch=7)", "delete(accumulate, microbatch=10, nth=1)",
        "duplicate(accumulate, nth=2)", "rescale(compute, by=2, rank=0, microbatch=6, nth=5)",
        "delete(free, microbatch=8, nth=2)", "delete(wait, microbatch=5, nth=1)"}) {
    try {
      const Program mutant = with_faults(program, {fault_from(text)});
      const Verdict own = check(mutant);
      if (!own.equivalent) ++broken;
      expect_same_judgement(mutant, own, check(opened(mutant)), text);
    } catch (const InputError&) {
      continue;  // a fault that this program has no place for
    }
  }
  EXPECT_GE(broken, 4);
}

INSTANTIATE_TEST_SUITE_P(OfTheCatalogue, WithoutLoops,
                         ::testing::Values(CatalogueJob{"llama-3.1-8b", "pp=2:1f1b dp=2:zero3"},
                                           CatalogueJob{"gpt2", "pp=2:gpipe dp=2:zero2"},
                                           CatalogueJob{"gpt2", "pp=2:zb-h1 dp=2:zero1"}));

INSTANTIATE_TEST_SUITE_P(OfTheCatalogue, WithoutProcedures,
                         ::testing::Values(CatalogueJob{"gpt2", "dp=2:zero1 tp=2:tp+sp"},
                                           CatalogueJob{"llama-3.1-8b", "pp=2:1f1b dp=2:zero3"},
                                           CatalogueJob{"llama-3.1-8b", "pp=2:dualpipe dp=2:zero2"},
                                           CatalogueJob{"gpt2", "pp=2:zb-h1 dp=2:zero1"},
                                           CatalogueJob{"qwen2.5-7b", "dp=2:zero3 tp=2:tp+sp",
                                                        "full"},
                                           CatalogueJob{"mixtral-8x7b", "dp=2:zero1 ep=2:ep+zero1"},
                                           CatalogueJob{"gpt2", "dp=3[3,2,1]:zero1"}));

}  // namespace
}  // namespace placet::testing
