// The mutation bench on real numbers. PLACET_MUTANTS_PER_KIND asks for more or fewer of each kind.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "execute/real_mutants.h"
#include "lower/catalogue_jobs.h"
#include "lower/small.h"

namespace placet::testing {
namespace {

TEST(RealMutantsSlow, DifferWhereTheAlgebraSaysSo) {
  const char* asked = std::getenv("PLACET_MUTANTS_PER_KIND");
  const int per_kind = asked == nullptr ? 2 : std::atoi(asked);
  RealTally tally;
  std::uint32_t seed = 100;
  for (const CatalogueJob& job :
       {CatalogueJob{"llama-3.1-8b", "dp=4:ddp"}, CatalogueJob{"gpt2", "dp=2:zero1 tp=2:tp+sp"},
        CatalogueJob{"llama-3.1-8b", "pp=2:1f1b dp=2:zero3"},
        CatalogueJob{"gpt2", "pp=2:gpipe dp=2:zero2 tp=2:tp+sp"},
        CatalogueJob{"falcon-7b", "dp=2:zero1 tp=2:tp"},
        CatalogueJob{"mixtral-8x7b", "dp=2:zero1 ep=2:ep+zero1"},
        CatalogueJob{"qwen2.5-7b", "dp=2:zero3 tp=2:tp+sp", "full"},
        CatalogueJob{"llama-3.1-8b", "dp=2:zero1 cp=2:gather+zero1"},
        CatalogueJob{"llama-3.1-8b", "dp=2:zero3 tp=2:tp", "", "8"},
        CatalogueJob{"gpt2", "dp=3[3,2,1]:zero1"},
        CatalogueJob{"llama-3.1-8b", "rep=2:ddp shard=2:zero3"},
        CatalogueJob{"llama-3.1-8b", "pp=2:interleaved(2) dp=2:zero1"},
        CatalogueJob{"gpt2", "dp=4:zero1+offload(optimizer)"},
        CatalogueJob{"gpt2", "pp=2:zb-h1 dp=2:zero1"},
        CatalogueJob{"gpt2", "dp=2:zero1+offload(activations)"},
        CatalogueJob{"llama-3.1-8b", "pp=2:dualpipe dp=2:zero2"},
        CatalogueJob{"qwen2.5-7b", "dp=2:zero1 cp=2:heads+zero1"}}) {
    const std::string name = job.model + " " + job.placement;
    run_mutants(name, lower_small(load(job), 4), seed++, per_kind, tally);
    std::printf("%6d mutants with %s\n", tally.mutants, name.c_str());
    std::fflush(stdout);
  }
  print_tally(tally);
  EXPECT_GE(tally.mutants, 2'000);
  EXPECT_EQ(tally.refused, 0);
  EXPECT_EQ(tally.alarms, std::vector<std::string>{});
  EXPECT_EQ(tally.missed, std::vector<std::string>{});
  EXPECT_LE(tally.by_chance.size() * 100, static_cast<std::size_t>(tally.apart));
  EXPECT_GE(tally.orders_found * 100, tally.orders * 99);
}

}  // namespace
}  // namespace placet::testing
