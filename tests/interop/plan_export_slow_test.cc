// All plans that are offered for an engine can be written for it.
#include <gtest/gtest.h>

#include "plan_export.h"

namespace placet {
namespace {

// Dense models and a mixture, on one node to eight.
TEST(PlanExportTest, PlansOfLargeModelsAreSayable) {
  EXPECT_GT(expect_plans_are_sayable({{"llama-3.1-8b", "a100-80gb-sxm:2", "8192", "128"},
                                      {"llama-3.1-70b", "h100-sxm:8", "8192", "512"},
                                      {"qwen3-30b-a3b", "h100-sxm:4", "4096", "512"},
                                      {"gpt2-xl", "a100-40gb-sxm:1", "1024", "256"},
                                      {"gpt-neox-20b", "a100-40gb-sxm:4", "2048", "512"}}),
            400U);
}

}  // namespace
}  // namespace placet
