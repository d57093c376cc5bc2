// A part of the mutation bench, small enough for every run of the tests.
#include <gtest/gtest.h>

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

// The same two elements: what is not cleared on the last device is not there.
TEST(Mutants, WhatIsLeftOfNothingIsNothing) {
  const Program program = lower_small(load({"qwen2.5-7b", "dp=2:zero2 cp=2:gather+zero2 tp=2:tp"}));
  for (const char* fault : {"delete(zero, rank=7, nth=25)", "delete(zero, rank=6, nth=1)"}) {
    const Judgement judgement = judge(program, fault_from(fault));
    EXPECT_FALSE(judgement.differs) << fault;
    EXPECT_FALSE(judgement.broken) << fault;
  }
}

TEST(Mutants, AreToldApartByBothJudges) {
  Bench bench;
  std::uint32_t seed = 1;
  for (const CatalogueJob& job : {CatalogueJob{"gpt2", "dp=2:zero1 tp=2:tp+sp"},
                                  CatalogueJob{"llama-3.1-8b", "pp=2:1f1b dp=2:zero3"},
                                  CatalogueJob{"gpt2", "pp=2:zb-h1 dp=2:zero1"}}) {
    bench.run(job.model + " " + job.placement, lower_small(load(job)), seed++, 1);
  }
  std::printf("%s", bench.table().c_str());
  for (const std::string& text : bench.astray()) std::printf("astray: %s\n", text.c_str());
  // At least 95 % of the first findings stand at the change or at what touches its buffers.
  EXPECT_GE(bench.total().named * 100, bench.total().broken * 95);
  for (const std::string& text : bench.missed()) ADD_FAILURE() << "not found: " << text;
  for (const std::string& text : bench.alarms()) ADD_FAILURE() << "false alarm: " << text;
  for (const std::string& text : bench.disguised()) ADD_FAILURE() << "under other names: " << text;
}

}  // namespace
}  // namespace placet::testing
