// Balance losses of routers: which scopes are the same training, and which depend on the layout.
#include <gtest/gtest.h>

#include "algebra/verify.h"
#include "catalog/job.h"
#include "check/check.h"
#include "lower/lower.h"
#include "lower/small.h"

namespace placet::testing {
namespace {

struct Opinions {
  bool equivalent = false;
  bool equal = false;
};

Opinions judge(const std::string& placement, const std::string& scope, std::int64_t samples) {
  const Job job = load_job(find_catalog(), {.model = "mixtral-8x7b",
                                            .placement = placement,
                                            .sequence = 256,
                                            .global_batch = samples,
                                            .clip = 1.0,
                                            .balance_loss = scope});
  const Program small = lower_small(job);
  const bool large = check(lower(job)).equivalent;
  EXPECT_EQ(check(small).equivalent, large);
  return {.equivalent = large, .equal = verify(small).equal};
}

void expect_same(const Opinions& opinions, bool same) {
  EXPECT_EQ(opinions.equivalent, same);
  EXPECT_EQ(opinions.equal, same);
}

TEST(BalanceLoss, OfEachSampleIsTheSameOnAnyLayout) {
  expect_same(judge("dp=2:zero1 tp=2:tp+sp", "sequence", 8), true);
  expect_same(judge("ep=2:ep cp=2:gather", "sequence", 4), true);
}

// The loads of two samples on one device are not those of one each on two.
TEST(BalanceLoss, OfTheStepSumsLoadsOverReplicas) {
  expect_same(judge("ep=2:ep", "global", 2), true);
  expect_same(judge("dp=4:zero2", "global", 4), true);
}

TEST(BalanceLoss, OfAMicroBatchDependsOnTheLayout) {
  expect_same(judge("tp=2:tp", "micro-batch", 1), true);    // one device has all samples
  expect_same(judge("dp=2:ddp", "micro-batch", 2), false);  // replicas
  expect_same(judge("tp=2:tp", "micro-batch", 2), false);   // micro-batches
}

}  // namespace
}  // namespace placet::testing
