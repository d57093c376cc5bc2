// Some mutants of a few programs on real numbers; all of them in mutants_slow_test.cc.
#include <gtest/gtest.h>

#include "execute/real_mutants.h"
#include "lower/catalogue_jobs.h"
#include "lower/small.h"

namespace placet::testing {
namespace {

TEST(RealMutants, DifferWhereTheAlgebraSaysSo) {
  constexpr std::size_t kEach = 60;
  RealTally tally;
  std::uint32_t seed = 1;
  for (const CatalogueJob& job : {CatalogueJob{"gpt2", "dp=2:zero1 tp=2:tp+sp"},
                                  CatalogueJob{"llama-3.1-8b", "pp=2:1f1b dp=2:zero3"},
                                  CatalogueJob{"mixtral-8x7b", "dp=2:zero1 ep=2:ep+zero1"}}) {
    run_mutants(job.model + " " + job.placement, lower_small(load(job), 4), seed++, 1, tally,
                kEach);
  }
  print_tally(tally);
  EXPECT_GE(tally.apart, 60);
  EXPECT_GE(tally.equal, 10);
  EXPECT_EQ(tally.refused, 0);
  EXPECT_EQ(tally.alarms, std::vector<std::string>{});
  EXPECT_EQ(tally.missed, std::vector<std::string>{});
}

}  // namespace
}  // namespace placet::testing
