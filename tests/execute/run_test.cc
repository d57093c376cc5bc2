// Runs of small programs: equal where they must be, and not where something is wrong.
#include "execute/run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "execute/promised.h"
#include "lower/catalogue_jobs.h"
#include "lower/small.h"
#include "program/fault.h"
#include "units/error.h"

namespace placet::testing {
namespace {

Program small_program(const CatalogueJob& what) { return lower_small(load(what)); }

RealRun run_with(const Program& program, Arithmetic arithmetic,
                 execute::Slip slip = execute::Slip::none) {
  return run(program, {.steps = 3, .arithmetic = arithmetic, .slip = slip});
}

TEST(RunTest, CanonicalStepsAreThoseOfOneDevice) {
  const RealRun found =
      run_with(small_program({"gpt2", "dp=2:zero3 tp=2:tp+sp"}), Arithmetic::canonical);
  EXPECT_TRUE(found.equal) << found.stuck.value_or("");
  EXPECT_EQ(found.ranks, 4);
  ASSERT_EQ(found.steps.size(), 3U);
  for (const StepLoss& step : found.steps) {
    EXPECT_EQ(step.ranks, step.one_device);
    EXPECT_GT(step.ranks, 0.0);
  }
  EXPECT_GT(found.compared, 1000);
}

/// A job of several micro-batches and devices, whose sums come in many parts.
const CatalogueJob kManyParts{"gpt2", "dp=2:ddp tp=2:tp"};

TEST(RunTest, PlainSumsAreCloseAndHaveOtherBits) {
  const Program program = small_program(kManyParts);
  const RealRun single = run_with(program, Arithmetic::binary32);
  EXPECT_TRUE(single.equal);
  EXPECT_GT(single.differing, 0);
  const RealRun twice = run_with(program, Arithmetic::binary64);
  EXPECT_TRUE(twice.equal);
  EXPECT_LT(twice.largest_difference, 1e-13);
}

// The test of the test: each mistake in the ranks' arithmetic is one that equality shows. Of sums
// that are rounded to binary64, most of what reads them rounds that away; not where attention adds
// up what comes round a ring.
TEST(RunTest, MistakesOfTheArithmeticAreSeen) {
  const Program program = small_program({"gpt2", "dp=2:zero1 cp=2:ring+zero1"});
  ASSERT_TRUE(run_with(program, Arithmetic::canonical).equal);
  for (const execute::Slip slip :
       {execute::Slip::float_sums, execute::Slip::unread, execute::Slip::reordered}) {
    const RealRun found = run_with(program, Arithmetic::canonical, slip);
    EXPECT_FALSE(found.equal) << static_cast<int>(slip);
    EXPECT_FALSE(found.differences.empty());
  }
}

TEST(RunTest, FaultsOfTheProgramAreSeen) {
  const Program program = small_program({"gpt2", "dp=2:ddp"});
  for (const char* words :
       {"delete(all_reduce, phase=reduce)", "rescale(all_reduce, phase=reduce, by=1/dp)",
        "skip_update(any, nth=1)"}) {
    try {
      const RealRun found =
          run_with(with_faults(program, {fault_from(words)}), Arithmetic::canonical);
      EXPECT_FALSE(found.equal) << words;
      if (found.stuck) continue;
      ASSERT_FALSE(found.differences.empty()) << words;
      EXPECT_NE(found.differences[0].expected, found.differences[0].found);
    } catch (const InputError& error) {
      ADD_FAILURE() << words << ": " << error.what();
    }
  }
}

TEST(RunTest, TheSameCallGivesTheSameBits) {
  const Program program = small_program({"llama-3.1-8b", "dp=2:zero1"});
  const RealRun once = run_with(program, Arithmetic::canonical);
  const RealRun again = run_with(program, Arithmetic::canonical);
  ASSERT_EQ(once.steps.size(), again.steps.size());
  for (std::size_t k = 0; k < once.steps.size(); ++k) {
    EXPECT_EQ(once.steps[k].ranks, again.steps[k].ranks);
  }
}

// Losses do not depend on the placement, but for the number of samples.
TEST(RunTest, PlacementsOfOneBatchHaveTheSameLosses) {
  const auto losses = [](const char* placement) {
    Job job = load({"gpt2", placement});
    std::vector<double> all;
    for (const StepLoss& s : run_with(lower_small(job), Arithmetic::canonical).steps) {
      all.push_back(s.ranks);
    }
    return all;
  };
  EXPECT_EQ(losses("dp=2:ddp"), losses("dp=2:zero3"));
  EXPECT_EQ(losses("dp=2:zero1"), losses("dp=2:zero3"));
}

class FewJobs : public ::testing::TestWithParam<CatalogueJob> {};

TEST_P(FewJobs, HaveTheBitsOfOneDevice) {
  if (!is_promised(GetParam())) GTEST_SKIP() << "bits are not promised";
  const RealRun found = run(small_program(GetParam()), {.steps = 2});
  EXPECT_TRUE(found.equal) << found.stuck.value_or(
      found.differences.empty() ? "" : "differs: " + found.differences[0].tensor);
}

INSTANTIATE_TEST_SUITE_P(OfTheCatalogue, FewJobs, ::testing::ValuesIn(few_catalogue_jobs()));

}  // namespace
}  // namespace placet::testing
