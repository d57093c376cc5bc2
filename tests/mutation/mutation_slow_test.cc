// The whole mutation bench. PLACET_MUTANTS_PER_KIND asks for more or fewer of each kind.
#include <gtest/gtest.h>

#include <cstdlib>

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

TEST(MutationBench, OfTheCatalogue) {
  const char* asked = std::getenv("PLACET_MUTANTS_PER_KIND");
  const int per_kind = asked == nullptr ? 4 : std::atoi(asked);
  Bench bench;
  std::uint32_t seed = 100;
  for (const CatalogueJob& job : jobs_of_the_bench()) {
    bench.run(job.model + " " + job.placement, lower_small(load(job)), seed++, per_kind);
  }
  std::printf("%s", bench.table().c_str());
  for (const std::string& text : bench.missed()) ADD_FAILURE() << "not found: " << text;
  for (const std::string& text : bench.alarms()) ADD_FAILURE() << "false alarm: " << text;
  for (const std::string& text : bench.astray()) std::printf("astray: %s\n", text.c_str());
  EXPECT_GE(bench.total().mutants, 10'000);
}

}  // namespace
}  // namespace placet::testing
