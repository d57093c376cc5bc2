// Programs written by hand, without labels and without a job that they came from: both judges
// agree on them, and findings name the line.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <ostream>

#include "algebra/verify.h"
#include "check/check.h"
#include "check/mend.h"
#include "program/fault.h"
#include "program/text.h"

namespace placet {
namespace {

std::string text_of(const std::string& name) {
  std::ifstream in(PLACET_SOURCE_DIR "/tests/check/programs/" + name + ".program");
  return {std::istreambuf_iterator<char>(in), {}};
}

Program program_of(const std::string& name) { return program_from(text_of(name), name); }

/// The number of the line that has these words.
int line_of(const std::string& name, const std::string& words) {
  const std::string text = text_of(name);
  const std::size_t found = text.find(words);
  EXPECT_NE(found, std::string::npos) << words;
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + std::ptrdiff_t(found), '\n'));
}

class RightProgram : public ::testing::TestWithParam<std::string> {};

TEST_P(RightProgram, IsProvedAndEqual) {
  const Program program = program_of(GetParam());
  const Verdict verdict = check(program);
  EXPECT_TRUE(verdict.equivalent) << verdict.findings.at(0).difference;
  EXPECT_TRUE(verify(program).equal);
}

INSTANTIATE_TEST_SUITE_P(ByHand, RightProgram,
                         ::testing::Values("shared_middle", "momentum_in_parts", "linear",
                                           "sent_once"));

// What is added to a sum beside its next micro-batch is there as often as there are micro-batches.
TEST(RightProgramTest, TakesOffWhatItAddedInEachMicroBatch) {
  std::string text = text_of("sum_in_a_sum");
  const std::size_t factor = text.find("-2 *");
  ASSERT_NE(factor, std::string::npos);
  const Program program = program_from(text.replace(factor, 2, "-23"), "sum_in_a_sum");
  EXPECT_TRUE(check(program).equivalent);
  EXPECT_TRUE(verify(program).equal);
}

struct Wrong {
  std::string name;
  Condition condition;
  std::string line;   // that the finding names
  bool shows = true;  // in numbers: not where only the order of streams is wrong

  friend std::ostream& operator<<(std::ostream& out, const Wrong& w) { return out << w.name; }
};

class WrongProgram : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongProgram, IsFoundUnderItsConditionAtItsLine) {
  const Program program = program_of(GetParam().name);
  const Verdict verdict = check(program);
  const std::string line =
      "line " + std::to_string(line_of(GetParam().name, GetParam().line)) + ":";
  const bool found = std::ranges::any_of(verdict.findings, [&](const CheckFinding& f) {
    return f.condition == GetParam().condition && f.at.starts_with(line);
  });
  EXPECT_TRUE(found) << line << (verdict.findings.empty() ? "nothing" : verdict.findings[0].at);
  EXPECT_EQ(verify(program).equal, !GetParam().shows);
}

INSTANTIATE_TEST_SUITE_P(
    ByHand, WrongProgram,
    ::testing::Values(Wrong{"unsummed_input_gradient", Condition::gradient_integrity, "update P ="},
                      Wrong{"own_count", Condition::gradient_integrity, "s[j] = seed("},
                      Wrong{"unfinished_sum", Condition::order, "update own, m =", false},
                      Wrong{"sum_in_a_sum", Condition::gradient_integrity, "g += z"},
                      Wrong{"first_in_each", Condition::gradient_integrity, "g += h[j]"},
                      Wrong{"nested_sums", Condition::gradient_integrity, "dP = through("},
                      Wrong{"half_cleared", Condition::gradient_integrity, "zero d:0"},
                      Wrong{"dead_misfit", Condition::order, "all_gather z ="},
                      Wrong{"misfit_elsewhere", Condition::order, "all_gather z ="},
                      Wrong{"sent_twice", Condition::order, "send P over pp to 1\n  free"},
                      Wrong{"message_of_many", Condition::order, "send P over pp to 2"},
                      Wrong{"exchanged_sums", Condition::order,
                            "all_reduce sum gB over grp\n  all_reduce sum gA"},
                      Wrong{"own_norm", Condition::update_integrity, "fac = lim(q)"}));

// A right program whose sums of gradients are doubled: what was put in is left out again.
TEST(ExternalTest, WhatIsDoneTwiceIsLeftOut) {
  const Program twice =
      with_faults(program_of("momentum_in_parts"), {fault_from("duplicate(all_reduce, nth=1)")});
  const MendSearch search = check_and_mend(twice);
  ASSERT_TRUE(search.mended);
  EXPECT_TRUE(search.verdict.cure->change.starts_with("leave out 'all_reduce"))
      << search.verdict.cure->change;
}

// A type is a label: one that says another part than the buffer holds is told, not believed.
TEST(ExternalTest, ATypeThatDisagreesIsTold) {
  const Program right = program_of("momentum_in_parts");
  EXPECT_TRUE(check(right).labels.empty());
  const Verdict shifted = check(with_faults(right, {fault_from("shift_slice(slice, by=1)")}));
  ASSERT_FALSE(shifted.labels.empty());
  EXPECT_NE(shifted.labels[0].find("'own' holds another part"), std::string::npos);
  EXPECT_FALSE(shifted.equivalent);
}

}  // namespace
}  // namespace placet
