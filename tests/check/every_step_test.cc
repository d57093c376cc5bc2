// One step from any state that has the reference's parameters stands for all steps, if it leaves
// such a state (docs/theory.md §6.6).
#include <gtest/gtest.h>

#include <string>

#include "check/check.h"
#include "check/machine.h"
#include "check/step_comparison.h"
#include "lower/catalogue_jobs.h"
#include "lower/small.h"
#include "program/fault.h"

namespace placet::testing {
namespace {

struct Ends {
  bool right = false;     // as the reference, without a breach
  bool as_begun = false;  // the next step finds what this one found
};

/// One step from any state.
Ends one_step(const Program& program) {
  Nodes nodes;
  Regions regions(program);
  KernelValues kernels(nodes, regions, program.axes.back().degree);
  ReferenceValues reference(program, nodes, kernels);
  Machine machine(program, nodes, regions, kernels,
                  {.tracing = Tracing::off, .memory = nullptr, .beginning = Beginning::any});
  machine.begin(reference);
  reference.advance();
  machine.run_step(reference);
  StepComparison comparison(program, nodes, machine, reference);
  return {.right = machine.breaches().empty() && comparison.holds_all(),
          .as_begun = machine.stands_as_begun()};
}

// Programs of lowering clear what they add to, and free what they make.
TEST(EveryStep, OfRightProgramsIsProvedByOne) {
  for (const CatalogueJob& job : few_catalogue_jobs()) {
    const Ends ends = one_step(lower_small(load(job)));
    EXPECT_TRUE(ends.right) << job.model << " " << job.placement;
    EXPECT_TRUE(ends.as_begun) << job.model << " " << job.placement;
  }
}

Program with(const char* fault) {
  const Program program = lower_small(load({"gpt2", "dp=2:zero1 tp=2:tp+sp"}));
  return with_faults(program, {fault_from(fault)});
}

// Gradients are nothing when the first step begins, and what it added up when the second does.
TEST(EveryStep, DoesNotBeginWithWhatOnlyTheFirstOneHas) {
  const Program program = with("delete(zero, nth=1)");
  EXPECT_FALSE(one_step(program).right);
  EXPECT_FALSE(is_right(program));
}

// The second step allocates it again.
TEST(EveryStep, LeavesNothingAlive) {
  const Program program = with("delete(free, nth=1)");
  const Ends ends = one_step(program);
  EXPECT_FALSE(ends.right && ends.as_begun);
  EXPECT_FALSE(is_right(program));
}

// Wrong in the second step alone.
TEST(EveryStep, IsNotToldByOneIfTheyDiffer) {
  EXPECT_FALSE(is_right(with("delete(accumulate, step=2, nth=1)")));
  EXPECT_FALSE(is_right(with("rescale(compute, by=2, step=2, nth=4)")));
}

}  // namespace
}  // namespace placet::testing
