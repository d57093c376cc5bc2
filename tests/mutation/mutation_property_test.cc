// A part of the mutation bench, small enough for every run of the tests.
#include <gtest/gtest.h>

#include <cmath>

#include "amount.h"
#include "lower/catalogue_jobs.h"
#include "lower/small.h"
#include "mutation/mutants.h"
#include "program/walk.h"

namespace placet::testing {
namespace {

bool passes_parts_on(const Program& program) {
  bool found = false;
  for (const DeviceClass& c : program.classes) {
    for_each_written_instruction(program, c.body, [&](const Instruction& i) {
      found = found || i.kind == InstructionKind::permute;
    });
  }
  return found;
}

TEST(Mutants, TypesOfRightProgramsAgree) {
  for (const CatalogueJob& job : few_catalogue_jobs()) {
    const Program program = lower_small(load(job));
    // Types tell which axes divide a sum, not of which device its parts are: no round of a ring.
    if (passes_parts_on(program)) continue;
    EXPECT_EQ(type_error(program), "") << job.model << " " << job.placement;
  }
}

// Two elements over four devices are 1, 1, 0 and 0 of them. In the wrong order they are 1, 0, 1 and
// 0, which fill the buffers as well.
TEST(Mutants, ShardsInAnotherOrderAreNotThoseOfTheirDevices) {
  const Program program =
      lower_small(load({"phi-4", "pp=2:1f1b dp=2:zero1 cp=2:gather+zero1 tp=2:tp+sp"}));
  const Judgement judgement = judge(program, fault_from("swap_shards(reduce_scatter, nth=1)"));
  EXPECT_TRUE(judgement.differs);
  EXPECT_TRUE(judgement.broken);
}

// Tensors that are shorter than the devices are many leave some of these nothing, which no fault
// makes wrong: not cleared, added up with another scale, summed of micro-batches that count
// differently, or written in the middle of the update, in rows of dense weights and of experts.
TEST(Mutants, WhatIsLeftOfNothingIsNothing) {
  struct Case {
    CatalogueJob job;
    const char* fault;
  };
  const CatalogueJob gathered = {"qwen2.5-7b", "dp=2:zero2 cp=2:gather+zero2 tp=2:tp"};
  const CatalogueJob columns = {"qwen2.5-7b", "x=2:tp-2d-hidden y=2:tp+sp z=2:tp-3d-depth"};
  const CatalogueJob experts = {"mixtral-8x7b", "dp=2:zero2 cp=4:ring+zero2 tp=2:tp"};
  const std::vector<Case> cases = {
      {gathered, "delete(zero, rank=7, nth=25)"},
      {gathered, "delete(zero, rank=6, nth=1)"},
      {experts, "rescale(update, by=cp, rank=14, nth=21)"},
      {{"phi-4", "dp=2:zero2 cp=2:gather+zero2 tp=2:tp"},
       "rescale(accumulate, by=1/tokens, rank=2, nth=16)"},
      {{"phi-4", "dp=2:zero2 cp=4:ring+zero2 tp=2:tp"},
       "reduce_op(reduce_scatter, to=mean, rank=5, microbatch=0, nth=1)"},
      {columns, "rescale(reduce_scatter, by=x, rank=1, microbatch=0, nth=9)"},
      {{"mixtral-8x7b", columns.placement}, "reuse_buffer(all_reduce, of=*, rank=1, nth=22)"},
      // Rows of two tensors, of which each device has one, in stages that have rows of their own.
      {{"deepseek-v3", "pp=2:1f1b ep=2:ep+zero1"}, "add_zero(copy, rank=2, nth=17)"}};
  for (const auto& [job, fault] : cases) {
    const Judgement judgement = judge(lower_small(load(job)), fault_from(fault));
    EXPECT_FALSE(judgement.differs) << fault;
    EXPECT_FALSE(judgement.broken) << fault;
  }
}

// Cut by x and by dp once more, one element of one device is the same element.
TEST(Mutants, TheSamePartUnderAnotherNameIsTheSame) {
  const Program program = lower_small(load({"phi-4", "x=2:batch(R,S*,S,R) dp=2:ddp"}));
  const Judgement same = judge(program, fault_from("regroup(slice, to=x*dp, rank=2, nth=40)"));
  EXPECT_FALSE(same.differs);
  EXPECT_FALSE(same.broken);
  const Judgement other = judge(program, fault_from("regroup(slice, to=x*dp, rank=3, nth=40)"));
  EXPECT_TRUE(other.broken);
}

class MutantsOf : public ::testing::TestWithParam<CatalogueJob> {};

// Some of each program's, drawn by a seed; all of them are in the slow tests.
TEST_P(MutantsOf, AreToldApartByBothJudges) {
  const auto some = static_cast<std::size_t>(amount_of(150, 3));
  const CatalogueJob& job = GetParam();
  Bench bench;
  bench.run(job.model + " " + job.placement, lower_small(load(job)), 1, 1, some);
  std::printf("%s", bench.table().c_str());
  for (const std::string& text : bench.astray()) std::printf("astray: %s\n", text.c_str());
  // Of all mutants at least 95 % of the first findings stand at the change or at what touches its
  // buffers; a sample may be three standard deviations below.
  const double broken = bench.total().broken;
  EXPECT_GE(bench.total().named, 0.95 * broken - 3 * std::sqrt(0.95 * 0.05 * broken));
  for (const std::string& text : bench.missed()) ADD_FAILURE() << "not found: " << text;
  for (const std::string& text : bench.alarms()) ADD_FAILURE() << "false alarm: " << text;
  for (const std::string& text : bench.disguised()) ADD_FAILURE() << "under other names: " << text;
}

INSTANTIATE_TEST_SUITE_P(SomePrograms, MutantsOf,
                         ::testing::Values(CatalogueJob{"gpt2", "dp=2:zero1 tp=2:tp+sp"},
                                           CatalogueJob{"llama-3.1-8b", "pp=2:1f1b dp=2:zero3"},
                                           CatalogueJob{"gpt2", "pp=2:zb-h1 dp=2:zero1"}),
                         [](const auto& of) { return "job_" + std::to_string(of.index); });

// Of a pipeline with twelve micro-batches, most of which are rounds of loops.
TEST(Mutants, OfLoopsAreToldApartByBothJudges) {
  Bench bench;
  const CatalogueJob job{"llama-3.1-8b", "pp=2:1f1b dp=2:zero1"};
  bench.run(job.model + " " + job.placement, with_long_pipeline(job), 7, 1, 60);
  for (const std::string& text : bench.missed()) ADD_FAILURE() << "not found: " << text;
  for (const std::string& text : bench.alarms()) ADD_FAILURE() << "false alarm: " << text;
  EXPECT_GE(bench.total().found, 20);
}

}  // namespace
}  // namespace placet::testing
