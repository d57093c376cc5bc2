// Optimizers that see a matrix as a whole, under both judges.
#include <gtest/gtest.h>

#include "lower/judged.h"

namespace placet::testing {
namespace {

// Each device has all of each matrix where it updates it.
TEST(WholeMatrices, AreSteppedWhereTheyAreWhole) {
  for (const char* placement : {"dp=2:ddp", "dp=2:batch(R,S*,R,R)", "dp=2:batch(S*,S*,S,R)",
                                "pp=2:1f1b", "pp=2:1f1b dp=2:batch(R,S*,R,R)"}) {
    EXPECT_EQ(judged("llama-3.2-1b", placement, "muon"), kEqual) << placement;
  }
}

// What tensor axes cut comes together for the update, and is cut again: fused tensors piece by
// piece, heads that several devices share, behind states that come together along data axes.
TEST(WholeMatrices, ComeTogetherAlongTensorAxes) {
  for (const char* placement :
       {"tp=2:tensor(S,S*,S,R)", "tp=2:tensor(S,S*,S,S*)", "dp=2:ddp tp=2:tensor(S,S*,S,R)",
        "dp=2:batch(R,S*,R,R) tp=2:tensor(S,S*,S,R)", "pp=2:1f1b tp=2:tensor(S,S*,S,R)",
        "dp=2:batch(S*,S*,S,R) tp=2:tensor(S,S*,S,S*)"}) {
    EXPECT_EQ(judged("llama-3.2-1b", placement, "muon"), kEqual) << placement;
  }
  EXPECT_EQ(judged("gpt2", "tp=2:tensor(S,S*,S,R)", "muon"), kEqual);
  EXPECT_EQ(judged("moonlight-16b-a3b", "tp=2:tensor(S,S*,S,R)", "muon"), kEqual);
  EXPECT_EQ(judged("llama-3.2-1b", "dp=2:zero1 tp=2:tensor(S,S*,S,R)", "muon"), kUnequal);
}

// Parts of a matrix are no smaller matrices: what is orthogonal in parts is not so as a whole.
TEST(WholeMatrices, AreNotSteppedInParts) {
  for (const char* placement : {"dp=2:zero1", "dp=2:zero3", "tp=2:tp"}) {
    EXPECT_EQ(judged("llama-3.2-1b", placement, "muon"), kUnequal) << placement;
  }
}

// The cause is named, not what follows when such parts are sent and put together.
TEST(WholeMatrices, OfWhichOnePartIsSeenAreNamed) {
  const Verdict verdict = check(small_program("llama-3.2-1b", "dp=2:zero1", "muon"));
  ASSERT_FALSE(verdict.findings.empty());
  for (const CheckFinding& finding : verdict.findings) {
    EXPECT_NE(finding.difference.find("sees a part of a row of elements only"), std::string::npos)
        << finding.difference;
  }
}

// Experts side by side are matrices of their own; joint projections of latent attention are fused.
TEST(WholeMatrices, OfExpertsAndFusedTensors) {
  for (const char* placement : {"ep=2:ep", "dp=2:batch(R,S*,R,R)"}) {
    EXPECT_EQ(judged("moonlight-16b-a3b", placement, "muon"), kEqual) << placement;
  }
}

}  // namespace
}  // namespace placet::testing
