// Programs that a rule of the checker once took for right, each for another reason, and right ones
// that it once refused: tests/check/programs/wrong and right. The first line of each says what it
// does.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "algebra/verify.h"
#include "check/both_judges.h"
#include "check/check.h"
#include "lower/catalogue_jobs.h"
#include "lower/small.h"
#include "program/fault.h"
#include "program/text.h"

namespace placet::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kPrograms = PLACET_SOURCE_DIR "/tests/check/programs";

Program program_in(const fs::path& path) {
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return program_from(text, path.stem().string());
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kPrograms / folder)) {
    names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

class WrongByHand : public ::testing::TestWithParam<std::string> {};

TEST_P(WrongByHand, IsFoundAndNotEqual) {
  const Program program = program_in(kPrograms / "wrong" / (GetParam() + ".program"));
  const Verdict verdict = check(program);
  EXPECT_FALSE(verdict.equivalent);
  EXPECT_FALSE(verdict.findings.empty());
  EXPECT_FALSE(is_right(program));
  EXPECT_FALSE(verify(program).equal);
}

INSTANTIATE_TEST_SUITE_P(Programs, WrongByHand, ::testing::ValuesIn(names_in("wrong")),
                         [](const auto& test) { return test.param; });

class RightByHand : public ::testing::TestWithParam<std::string> {};

TEST_P(RightByHand, IsProvedAndEqual) {
  const Program program = program_in(kPrograms / "right" / (GetParam() + ".program"));
  EXPECT_TRUE(check(program).equivalent);
  EXPECT_TRUE(is_right(program));
  EXPECT_TRUE(verify(program).equal);
}

INSTANTIATE_TEST_SUITE_P(Programs, RightByHand, ::testing::ValuesIn(names_in("right")),
                         [](const auto& test) { return test.param; });

// Two steps are run, and all that follow are meant: what the second begins with, the third does.
TEST(SoundnessTest, WhatShowsInALaterStepIsFound) {
  const Program program = program_in(kPrograms / "shows_in_the_third_step.program");
  EXPECT_TRUE(verify(program).equal);
  EXPECT_FALSE(verify(program, {.steps = 3}).equal);
  const Verdict verdict = check(program);
  ASSERT_FALSE(verdict.equivalent);
  EXPECT_EQ(verdict.findings[0].difference, "the next step begins with what this one left");
}

// Each kernel of backward, of one micro-batch alone. One makes what is zero at any scale: the
// gradient of the keys' bias.
TEST(SoundnessTest, AMicroBatchOfAnotherScaleIsFound) {
  const Program program = lower_small(load({"gpt2", "dp=2:ddp"}));
  const std::string fault = "rescale(compute, phase=backward, microbatch=1, by=2";
  const auto [equal, wrong] = equal_and_wrong(program, fault);
  EXPECT_GE(wrong, 10);
  EXPECT_EQ(equal, 1);
  EXPECT_EQ(equal_and_wrong(program, fault + ", tensor=d.*c_attn.bias").first, equal);
}

}  // namespace
}  // namespace placet::testing
