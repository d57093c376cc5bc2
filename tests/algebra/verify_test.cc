#include "algebra/verify.h"

#include <gtest/gtest.h>

#include "algebra/small_step.h"
#include "program/wellformed.h"

namespace placet {
namespace {

void expect_step_equal(const SmallStep& request) {
  const Program program = small_step(request);
  require_wellformed(program, {.where = "small step"});
  const Verification v = verify(program);
  EXPECT_TRUE(v.equal) << v.stuck.value_or("")
                       << (v.witness.empty() ? "" : " " + v.witness[0].tensor);
  EXPECT_EQ(v.seeds, 2);
  EXPECT_EQ(v.ranks, request.data * request.tensor);
  EXPECT_LT(v.error_probability, 1e-15);
}

TEST(VerifyTest, OneDeviceIsItsOwnReference) { expect_step_equal({}); }

TEST(VerifyTest, SamplesOverTwoDevices) { expect_step_equal({.data = 2}); }

TEST(VerifyTest, HiddenOverTwoDevices) { expect_step_equal({.tensor = 2}); }

TEST(VerifyTest, MicroBatches) { expect_step_equal({.micro_batches = 4}); }

TEST(VerifyTest, AllTogetherOverEightDevices) {
  expect_step_equal({.data = 4, .tensor = 2, .micro_batches = 2});
}

TEST(VerifyTest, DividedOptimizerStates) {
  expect_step_equal({.data = 2, .divided_state = true});
  expect_step_equal({.data = 4, .tensor = 2, .micro_batches = 2, .divided_state = true});
}

// 7 samples over 3 devices and 2 micro-batches: 3, 2, 2 and of these 2 + 1, 1 + 1, 1 + 1.
// 5 hidden over 2: 3 and 2; 3 x 3 = 9 and 2 x 3 = 6 elements over 3.
TEST(VerifyTest, UnevenShares) {
  expect_step_equal({.data = 3,
                     .tensor = 2,
                     .micro_batches = 2,
                     .samples = 7,
                     .hidden = 5,
                     .divided_state = true});
  expect_step_equal({.data = 2,
                     .tensor = 2,
                     .samples = 8,
                     .hidden = 6,
                     .data_shares = {3, 1},
                     .tensor_shares = {2, 1},
                     .divided_state = true});
}

}  // namespace
}  // namespace placet
