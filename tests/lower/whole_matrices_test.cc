// Optimizers that see a matrix as a whole, and sinks of attention, under both judges.
#include <gtest/gtest.h>

#include "algebra/verify.h"
#include "catalog/job.h"
#include "check/check.h"
#include "lower/small.h"

namespace placet::testing {
namespace {

struct Judged {
  bool proved = false;
  bool run = false;  // all ranks over a finite field

  friend bool operator==(const Judged&, const Judged&) = default;
};

constexpr Judged kEqual{true, true};
constexpr Judged kUnequal{false, false};

Judged judged(const char* model, const char* placement, const char* optimizer = "adamw") {
  JobRequest request{.model = model, .placement = placement, .optimizer = optimizer};
  request.sequence = 256;
  request.global_batch = 8;
  const Program program = lower_small(load_job(find_catalog(), request));
  return {.proved = check(program).equivalent, .run = verify(program).equal};
}

// Each device has all of each matrix where it updates it.
TEST(WholeMatrices, AreSteppedWhereTheyAreWhole) {
  for (const char* placement : {"dp=2:ddp", "dp=2:batch(R,S*,R,R)", "dp=2:batch(S*,S*,S,R)",
                                "pp=2:1f1b", "pp=2:1f1b dp=2:batch(R,S*,R,R)"}) {
    EXPECT_EQ(judged("llama-3.2-1b", placement, "muon"), kEqual) << placement;
  }
}

// Parts of a matrix are no smaller matrices: what is orthogonal in parts is not so as a whole.
TEST(WholeMatrices, AreNotSteppedInParts) {
  for (const char* placement : {"dp=2:zero1", "dp=2:zero3", "tp=2:tp"}) {
    EXPECT_EQ(judged("llama-3.2-1b", placement, "muon"), kUnequal) << placement;
  }
}

// Experts side by side are matrices of their own; joint projections of latent attention are fused.
TEST(WholeMatrices, OfExpertsAndFusedTensors) {
  for (const char* placement : {"ep=2:ep", "dp=2:batch(R,S*,R,R)"}) {
    EXPECT_EQ(judged("moonlight-16b-a3b", placement, "muon"), kEqual) << placement;
  }
}

// The sink of a head is in the denominator of its softmax once, on whatever device its keys are.
TEST(Sinks, AreAddedOnce) {
  for (const char* placement : {"dp=2:zero3", "tp=2:tp+sp", "cp=2:gather", "cp=2:ring",
                                "cp=2:ring tp=2:tp+sp", "pp=2:zb-h1"}) {
    EXPECT_EQ(judged("gpt-oss-20b", placement), kEqual) << placement;
  }
}

}  // namespace
}  // namespace placet::testing
