// Sinks and limits of attention's scores, under both judges.
#include <gtest/gtest.h>

#include <string>

#include "lower/judged.h"
#include "lower/lower.h"
#include "program/text.h"

namespace placet::testing {
namespace {

// The sink of a head is in the denominator of its softmax once, on whatever device its keys are.
TEST(AttentionTerms, SinksAreAddedOnce) {
  for (const char* placement : {"dp=2:zero3", "tp=2:tp+sp", "cp=2:gather", "cp=2:ring",
                                "cp=2:ring tp=2:tp+sp", "pp=2:zb-h1"}) {
    EXPECT_EQ(judged("gpt-oss-20b", placement), kEqual) << placement;
  }
}

// Gemma 2 limits scores and logits; what is limited is whole on whatever devices it is made.
TEST(AttentionTerms, ScoresAreLimitedWhereTheyAreWhole) {
  for (const char* placement :
       {"dp=2:zero3", "tp=2:tp+sp", "cp=2:gather", "cp=2:ring", "cp=2:ulysses"}) {
    EXPECT_EQ(judged("gemma-2-2b", placement), kEqual) << placement;
  }
}

// 50 of the scores, 30 of the logits: Gemma Team, Gemma 2, arXiv:2408.00118, section 2.
TEST(AttentionTerms, LimitsAreFunctionsOfTheirOwn) {
  JobRequest request{.model = "gemma-2-2b", .placement = "dp=2:ddp"};
  request.sequence = 256;
  request.global_batch = 8;
  const std::string text = to_text(lower(load_job(find_catalog(), request)));
  EXPECT_NE(text.find(" = capped(a["), std::string::npos);
  EXPECT_NE(text.find(" = exp_seen(b["), std::string::npos);
  EXPECT_NE(text.find(" = exp_seen.4096(b["), std::string::npos);
  EXPECT_NE(text.find(" = capped.1(x["), std::string::npos);
  EXPECT_EQ(text.find("exp_dot"), std::string::npos);
}

}  // namespace
}  // namespace placet::testing
