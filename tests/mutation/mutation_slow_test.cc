// The whole mutation bench. PLACET_MUTANTS_PER_KIND asks for more or fewer of each kind.
#include <gtest/gtest.h>

#include <cstdlib>

#include "algebra/verify.h"
#include "check/mend.h"
#include "lower/catalogue_jobs.h"
#include "lower/small.h"
#include "mutation/mutants.h"

namespace placet::testing {
namespace {

std::vector<CatalogueJob> jobs_of_the_bench() {
  return {
      {"llama-3.1-8b", "dp=4:ddp"},
      {"gpt2", "dp=2:zero1 tp=2:tp+sp"},
      {"llama-3.1-8b", "pp=2:1f1b dp=2:zero3"},
      {"gpt2", "pp=2:gpipe dp=2:zero2 tp=2:tp+sp"},
      {"falcon-7b", "dp=2:zero1 tp=2:tp"},
      {"mixtral-8x7b", "dp=2:zero1 ep=2:ep+zero1"},
      {"qwen2.5-7b", "dp=2:zero3 tp=2:tp+sp", "full"},
      {"llama-3.1-8b", "dp=2:zero1 cp=2:gather+zero1"},
      {"llama-3.1-8b", "dp=2:zero3 tp=2:tp", "", "8"},
      {"gpt2", "dp=3[3,2,1]:zero1"},
      {"llama-3.1-8b", "rep=2:ddp shard=2:zero3"},
      {"llama-3.1-8b", "pp=2:interleaved(2) dp=2:zero1"},
      {"gpt2", "dp=4:zero1+offload(optimizer)"},
      {"gpt2", "pp=2:zb-h1 dp=2:zero1"},
      {"gpt2", "dp=2:zero1+offload(activations)"},
      {"llama-3.1-8b", "pp=2:dualpipe dp=2:zero2"},
      {"qwen2.5-7b", "dp=2:zero1 cp=2:heads+zero1"},
      {"mixtral-8x7b", "ep=2:ep+zero1 tp=2:tp", "selective=attention,moe"},
      {"deepseek-v3", "pp=2:1f1b ep=2:ep+zero1"},
  };
}

void run(const CatalogueJob& job, std::uint32_t seed, int per_kind, std::size_t most,
         Bench& bench) {
  const std::string name = job.model + " " + job.placement;
  bench.run(name, lower_small(load(job)), seed, per_kind, most);
  std::printf("%6d mutants with %s\n", bench.total().mutants, name.c_str());
  std::fflush(stdout);
}

void expect_agreement(const Bench& bench) {
  std::printf("%s", bench.table().c_str());
  std::printf("%d break other conditions under other names\n", bench.total().reordered);
  for (const std::string& text : bench.astray()) std::printf("astray: %s\n", text.c_str());
  for (const std::string& text : bench.missed()) ADD_FAILURE() << "not found: " << text;
  for (const std::string& text : bench.alarms()) ADD_FAILURE() << "false alarm: " << text;
  for (const std::string& text : bench.disguised()) ADD_FAILURE() << "under other names: " << text;
  EXPECT_GE(bench.total().mutants, 10'000);
  EXPECT_GE(bench.total().named * 100, bench.total().broken * 95);
}

TEST(MutationBench, OfEveryKind) {
  const char* asked = std::getenv("PLACET_MUTANTS_PER_KIND");
  const int per_kind = asked == nullptr ? 6 : std::atoi(asked);
  Bench bench;
  std::uint32_t seed = 100;
  for (const CatalogueJob& job : jobs_of_the_bench()) {
    run(job, seed++, per_kind, std::numeric_limits<std::size_t>::max(), bench);
  }
  expect_agreement(bench);
}

// Of pipelines with twelve micro-batches, most of which are rounds of loops.
TEST(MutationBench, OfLoops) {
  const char* asked = std::getenv("PLACET_MUTANTS_PER_KIND");
  const int per_kind = asked == nullptr ? 2 : std::atoi(asked);
  Bench bench;
  std::uint32_t seed = 500;
  for (const CatalogueJob& job : {CatalogueJob{"llama-3.1-8b", "pp=2:1f1b dp=2:zero3"},
                                  CatalogueJob{"gpt2", "pp=2:gpipe dp=2:zero2 tp=2:tp+sp"},
                                  CatalogueJob{"llama-3.1-8b", "pp=2:interleaved(2) dp=2:zero1"},
                                  CatalogueJob{"gpt2", "pp=2:zb-h1 dp=2:zero1"},
                                  CatalogueJob{"llama-3.1-8b", "pp=2:dualpipe dp=2:zero2"}}) {
    const std::string name = job.model + " " + job.placement;
    bench.run(name, with_long_pipeline(job), seed++, per_kind);
    std::printf("%6d mutants with %s\n", bench.total().mutants, name.c_str());
    std::fflush(stdout);
  }
  std::printf("%s", bench.table().c_str());
  for (const std::string& text : bench.missed()) ADD_FAILURE() << "not found: " << text;
  for (const std::string& text : bench.alarms()) ADD_FAILURE() << "false alarm: " << text;
  EXPECT_GE(bench.total().named * 100, bench.total().broken * 95);
}

// A few mutants of every program of the catalogue.
TEST(MutationBench, OfTheCatalogue) {
  Bench bench;
  std::uint32_t seed = 1000;
  for (const CatalogueJob& job : all_catalogue_jobs()) run(job, seed++, 1, 30, bench);
  expect_agreement(bench);
}

// Of every third mutant of two programs: how many one instruction mends, and that what is told
// mends it for the other judge as well.
TEST(MutationBench, CuresAreRight) {
  int broken = 0;
  int mended = 0;
  int tried = 0;
  std::uint32_t seed = 1;
  for (const CatalogueJob& job : {CatalogueJob{"gpt2", "dp=2:zero1 tp=2:tp+sp"},
                                  CatalogueJob{"llama-3.1-8b", "pp=2:1f1b dp=2:zero3"}}) {
    const Program program = lower_small(load(job));
    std::mt19937 generator(seed++);
    const std::vector<Fault> faults = draw_faults(program, generator, 1);
    for (std::size_t k = 0; k < faults.size(); k += 3) {
      const std::optional<Program> mutant = wellformed_mutant(program, faults[k]);
      if (!mutant) continue;
      const MendSearch search = check_and_mend(*mutant);
      if (search.verdict.equivalent) continue;
      ++broken;
      tried += search.verdict.cure->tried;
      if (!search.mended) {
        std::printf("no cure: %s, %d tried%s\n", faults[k].text.c_str(), search.verdict.cure->tried,
                    search.verdict.cure->cut_short ? ", cut short" : "");
        continue;
      }
      ++mended;
      EXPECT_TRUE(verify(*search.mended).equal)
          << faults[k].text << ": " << search.verdict.cure->change;
    }
  }
  std::printf("%d of %d mended, %d changes tried\n", mended, broken, tried);
  EXPECT_GE(mended * 2, broken);
}

}  // namespace
}  // namespace placet::testing
