// Sums that are zero, and factors that cancel, whatever the numbers are.
#include "check/identities.h"

#include <gtest/gtest.h>

#include "algebra/verify.h"
#include "check/both_judges.h"
#include "check/check.h"
#include "lower/catalogue_jobs.h"
#include "lower/lower.h"
#include "lower/small.h"
#include "program/fault.h"
#include "program/text.h"

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

// Scores are scaled by a number that the gradients of queries and keys have once each. With that of
// another head size, without it on the way back, or with it twice, it is another training.
TEST(AttentionScale, StandsUnderTheProof) {
  const std::string right = to_text(lower_small(load({"gpt2", "dp=2:ddp"})));
  ASSERT_TRUE(check(program_from(right, "right")).equivalent);
  const std::size_t back = right.find("kernel attention-back");
  const auto changed = [&](const std::string& from, const std::string& to) {
    const std::size_t at = right.find(from, back);
    EXPECT_NE(at, std::string::npos) << from;
    return program_from(std::string(right).replace(at, from.size(), to), "wrong");
  };
  const std::string keys = "k[sample token' head head-size] * c[]\n";
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"attention_scale.64", "attention_scale.32"},
           {keys, "k[sample token' head head-size]\n"},
           {keys, "k[sample token' head head-size] * c[] * c[]\n"}}) {
    const Program wrong = changed(from, to);
    EXPECT_FALSE(check(wrong).equivalent) << to;
    EXPECT_FALSE(verify(wrong).equal) << to;
  }
}

// Every sum over devices is divided by their number: that of tokens, by which the gradients are
// divided, and that of gradients. One cancels the other.
TEST(Scale, OfAllSumsCancels) {
  for (const std::string fault :
       {"rescale(all_reduce, by=1/dp)", "reduce_op(all_reduce, to=mean)"}) {
    for (const CatalogueJob& job :
         {CatalogueJob{"gpt2", "dp=2:ddp"}, CatalogueJob{"llama-3.1-8b", "dp=2:ddp"}}) {
      const Program program = with_faults(lower_small(load(job)), {fault_from(fault)});
      EXPECT_TRUE(verify(program).equal) << job.model << " " << fault;
      EXPECT_TRUE(check(program).equivalent) << job.model << " " << fault;
    }
  }
}

// The tokens are divided alone: the gradients are too large, and what is told is where that began.
TEST(Scale, OfTheTokensIsFoundWhereItBegan) {
  const Program program = with_faults(lower(load({"gpt2", "dp=4:ddp"})),
                                      {fault_from("rescale(all_reduce, by=1/dp, nth=1)")});
  const Verdict verdict = check(program);
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_EQ(verdict.findings[0].difference, "the scale is 4 times what it should be (dp)");
  EXPECT_TRUE(verdict.findings[0].at.starts_with("scale tokens")) << verdict.findings[0].at;
  EXPECT_EQ(verdict.findings[0].fix, "it is divided by what is made there: multiply that by 4");
}

// One micro-batch's gradient, or one of two that meet in a stream, has another scale.
TEST(Scale, OfOnePartOfASumIsFoundWhereItBegan) {
  const Program right = lower_small(load({"gpt2", "dp=2:ddp"}));
  for (const std::string fault : {"rescale(accumulate, tensor=g.*, microbatch=1, by=3, nth=1)",
                                  "rescale(compute, tensor=d.stream, microbatch=0, by=3, nth=1)"}) {
    const Verdict verdict = check(with_faults(right, {fault_from(fault)}));
    ASSERT_FALSE(verdict.findings.empty()) << fault;
    EXPECT_TRUE(verdict.findings[0].at.starts_with("scale ")) << verdict.findings[0].at;
  }
}

}  // namespace
}  // namespace placet::testing
