// Sums that are zero whatever the numbers are.
#include "check/identities.h"

#include <gtest/gtest.h>

#include "check/both_judges.h"
#include "lower/catalogue_jobs.h"
#include "lower/small.h"

namespace placet::testing {
namespace {

// gpt2 adds biases to queries, keys and values. What becomes of the gradient of the keys' does not
// matter where its sum over the keys is whole; of the others it does.
TEST(KeyBias, HasNoGradient) {
  const Program program = lower_small(load({"gpt2", "dp=2:zero1 tp=2:tp+sp"}));
  for (const std::string fault : {"detach_adjoint(compute, rank=2, tensor=d.*c_attn.bias",
                                  "rescale(compute, by=2, tensor=d.*c_attn.bias"}) {
    const auto [equal, wrong] = equal_and_wrong(program, fault);
    EXPECT_GE(equal, 1) << fault;
    EXPECT_GE(wrong, 2) << fault;
  }
}

// Of a key that is turned by its position, the sum over the keys is none over one softmax's scores.
TEST(KeyBias, HasOneIfKeysAreTurned) {
  const Program program = lower_small(load({"qwen2.5-7b", "dp=2:zero1 tp=2:tp"}));
  const auto [equal, wrong] =
      equal_and_wrong(program, "rescale(compute, by=2, tensor=d.*k_proj.bias");
  EXPECT_EQ(equal, 0);
  EXPECT_GE(wrong, 1);
}

}  // namespace
}  // namespace placet::testing
