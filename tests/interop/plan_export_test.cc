// All plans that are offered for an engine can be written for it: of a small model.
#include <gtest/gtest.h>

#include "plan_export.h"

namespace placet {
namespace {

TEST(PlanExportTest, PlansOfASmallModelAreSayable) {
  EXPECT_GT(expect_plans_are_sayable({{"gpt2-xl", "a100-40gb-sxm:1", "1024", "32"}}), 40U);
}

}  // namespace
}  // namespace placet
