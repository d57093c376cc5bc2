// A loss scaled by a number that follows from overflows, and steps that are skipped for them.
#include <gtest/gtest.h>

#include <algorithm>

#include "algebra/verify.h"
#include "catalog/job.h"
#include "check/check.h"
#include "lower/lower.h"
#include "lower/small.h"
#include "program/fault.h"
#include "program/text.h"

namespace placet::testing {
namespace {

Program program_of(const std::string& placement, std::optional<double> clip = std::nullopt) {
  JobRequest request;
  request.model = "gpt2";
  request.placement = placement;
  request.sequence = 256;
  request.global_batch = 8;
  request.clip = clip;
  request.precision = "mixed-fp16";
  return lower_small(load_job(find_catalog(), request));
}

int count_labelled(const Program& program, const std::string& label) {
  const std::string text = to_text(program);
  int n = 0;
  for (std::size_t at = text.find(label); at != std::string::npos; at = text.find(label, at + 1)) {
    ++n;
  }
  return n;
}

TEST(LossScaling, IsTheTrainingOfOneDevice) {
  for (const char* placement :
       {"dp=4:ddp", "dp=2:zero3 tp=2:tp+sp", "pp=2:1f1b dp=2:zero1", "dp=2:zero2 cp=2:gather"}) {
    for (const std::optional<double> clip : {std::optional<double>(), std::optional(1.0)}) {
      const Program program = program_of(placement, clip);
      EXPECT_TRUE(check(program).equivalent) << placement;
      EXPECT_TRUE(verify(program).equal) << placement;
      EXPECT_EQ(program_from(to_text(program), "text"), program) << placement;
    }
  }
}

TEST(LossScaling, IsAChoiceThatIsPrinted) {
  const Program program = program_of("dp=2:ddp");
  EXPECT_TRUE(std::ranges::any_of(program.reference.choices, [](const std::string& choice) {
    return choice.starts_with("loss scale: dynamic");
  }));
  EXPECT_EQ(program.reference.numbers.front(), "loss-scale");
}

/// The first condition that a change breaks; checker and executor have to agree that one is.
Condition broken_by(const std::string& fault, const std::string& placement) {
  const Program changed = with_faults(program_of(placement, 1.0), {fault_from(fault)});
  EXPECT_FALSE(verify(changed).equal) << fault;
  const Verdict verdict = check(changed);
  EXPECT_FALSE(verdict.equivalent) << fault;
  return verdict.findings.empty() ? Condition::order : verdict.findings.front().condition;
}

// Whether a step is skipped is decided by all devices together: one that sees only its own
// gradients goes on alone.
TEST(LossScaling, OverflowsOfAllDevicesCount) {
  EXPECT_EQ(broken_by("delete(all_reduce, tensor=overflow)", "dp=2:zero1 tp=2:tp"),
            Condition::update_integrity);
  EXPECT_EQ(broken_by("regroup(all_reduce, tensor=overflow, to=dp)", "dp=2:zero1 tp=2:tp"),
            Condition::update_integrity);
}

TEST(LossScaling, ALossThatIsNotScaledIsFound) {
  broken_by("delete(compute, tensor=loss-scale)", "dp=2:zero1 tp=2:tp");
}

TEST(LossScaling, OneScaleForTheStepAndOneChangeOfIt) {
  const Program program = program_of("dp=2:zero1 pp=2:1f1b", 1.0);
  const auto classes = static_cast<int>(program.classes.size());
  EXPECT_EQ(count_labelled(program, "= adjust("), classes);
}

}  // namespace
}  // namespace placet::testing
