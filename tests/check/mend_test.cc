// The change of one instruction that makes a wrong program right.
#include "check/mend.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "algebra/verify.h"
#include "lower/catalogue_jobs.h"
#include "lower/small.h"
#include "program/fault.h"

namespace placet::testing {
namespace {

const Program& right_program() {
  static const Program program = lower_small(load({"gpt2", "dp=2:zero1 tp=2:tp+sp"}));
  return program;
}

class Mended : public ::testing::TestWithParam<std::string> {};

// The other judge, which shares nothing with the search, calls what comes out equal.
TEST_P(Mended, IsRightForBothJudges) {
  const Program mutant = with_faults(right_program(), {fault_from(GetParam())});
  ASSERT_FALSE(verify(mutant).equal);
  const MendSearch search = check_and_mend(mutant);
  EXPECT_FALSE(search.verdict.equivalent);
  ASSERT_TRUE(search.verdict.cure);
  ASSERT_TRUE(search.mended) << search.verdict.cure->tried << " tried";
  EXPECT_TRUE(check(*search.mended).equivalent) << search.verdict.cure->change;
  EXPECT_TRUE(verify(*search.mended).equal) << search.verdict.cure->change;
  EXPECT_FALSE(search.verdict.cure->change.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Faults, Mended,
    ::testing::Values("delete(all_reduce, axis=tp, phase=reduce, nth=1)",
                      "rescale(reduce_scatter, by=1/dp, nth=1)", "rescale(compute, by=2, nth=9)",
                      "regroup(reduce_scatter, to=tp, nth=1)", "add_zero(accumulate, nth=1)",
                      "duplicate(accumulate, nth=2)", "delete(accumulate, nth=2)",
                      "delete(all_gather, nth=1)", "delete(reduce_scatter, nth=1)",
                      "delete(copy, nth=1)", "early_free(free, nth=2)",
                      "skip_update(update, rank=0, nth=3)", "wrong_key(random, nth=2)",
                      "delete(compute, layer=1, nth=3)"));

TEST(MendTest, ARightProgramNeedsNone) {
  const MendSearch search = check_and_mend(right_program());
  EXPECT_TRUE(search.verdict.equivalent);
  EXPECT_FALSE(search.verdict.cure);
  EXPECT_FALSE(search.mended);
}

// A collective that some devices of its group do not come to any more.
TEST(MendTest, DevicesThatDoNotComeAreBroughtBack) {
  const Program program = lower_small(load({"gpt2", "pp=2:1f1b dp=2:zero1"}));
  const Program mutant =
      with_faults(program, {fault_from("delete(all_reduce, axis=pp, phase=reduce, nth=1)")});
  const MendSearch search = check_and_mend(mutant);
  ASSERT_TRUE(search.mended) << search.verdict.cure->tried << " tried";
  EXPECT_TRUE(verify(*search.mended).equal) << search.verdict.cure->change;
}

TEST(MendTest, TheWorkIsBounded) {
  const Program mutant =
      with_faults(right_program(), {fault_from("regroup(reduce_scatter, to=tp, nth=1)")});
  const MendSearch search = check_and_mend(mutant, 1);
  ASSERT_TRUE(search.verdict.cure);
  EXPECT_EQ(search.verdict.cure->tried, 0);
  EXPECT_TRUE(search.verdict.cure->cut_short);
  EXPECT_TRUE(search.verdict.cure->change.empty());
  EXPECT_FALSE(search.mended);
}

/// The event that is recorded behind the first of these instructions that writes the family.
int event_behind(const Program& program, InstructionKind kind, const std::string& family) {
  const Instruction* writer = nullptr;
  for (const Step& step : program.classes.at(0).body) {
    const auto* i = std::get_if<Instruction>(&step.what);
    if (i == nullptr) continue;
    const auto is_written = [&](const BufferRef& ref) {
      return program.families.at(static_cast<std::size_t>(ref.family)).name == family;
    };
    if (writer == nullptr && i->kind == kind && std::ranges::any_of(i->outputs, is_written)) {
      writer = i;
    }
    const bool records = i->kind == InstructionKind::record;
    if (writer != nullptr && records && i->stream == writer->stream) return i->event;
  }
  return -1;
}

// A gradient that is scattered over dp on one queue lacks its sum over tp on another: there the sum
// comes behind the wait for what was recorded behind the scatter, and for no other one.
TEST(MendTest, ASumComesBehindTheWaitForWhatItSums) {
  const std::string gradient = "own.embedding.transformer.wpe.weight";
  const Program mutant = with_faults(
      right_program(), {fault_from("delete(all_reduce, phase=reduce, tensor=" + gradient + ")")});
  const int event = event_behind(mutant, InstructionKind::reduce_scatter, gradient);
  ASSERT_GE(event, 0);
  const MendSearch search = check_and_mend(mutant);
  ASSERT_TRUE(search.mended);
  EXPECT_TRUE(search.verdict.cure->change.ends_with("behind 'wait " + std::to_string(event) + "'"))
      << search.verdict.cure->change;
}

}  // namespace
}  // namespace placet::testing
