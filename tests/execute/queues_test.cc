// Queues of ranks that meet in messages only: whatever queue goes first, a right program gives the
// bits of one device; one whose order is not settled does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "check/check.h"
#include "execute/promised.h"
#include "execute/real_mutants.h"
#include "execute/run.h"
#include "lower/catalogue_jobs.h"
#include "lower/small.h"
#include "program/fault.h"

namespace placet {

/// How a message of a test shows it.
void PrintTo(const SentBytes& sent, std::ostream* out) {
  *out << sent.collective << " over " << ::testing::PrintToString(sent.axes) << ": " << sent.calls
       << " calls, " << sent.bytes << " bytes";
}

namespace testing {
namespace {

const std::vector<std::string> kOrders = {"early", "late", "seeded=1", "seeded=2"};

RealRun run_in(const Program& program, const std::string& order, int steps = 2) {
  return run(program, {.steps = steps, .order = queue_order_from(order)});
}

std::string why(const RealRun& found) {
  if (found.stuck) return *found.stuck;
  return found.differences.empty() ? "" : "differs: " + found.differences[0].tensor;
}

class Queues : public ::testing::TestWithParam<CatalogueJob> {};

// Two ways to the same: transfers between the memories of all ranks, in step, and messages between
// ranks that know only themselves. Both have the bits of one device and send as much.
TEST_P(Queues, HaveTheBitsOfOneDeviceInEveryOrder) {
  if (!is_promised(GetParam())) GTEST_SKIP() << "bits are not promised";
  const Program program = lower_small(load(GetParam()));
  const RealRun in_step = run_in(program, "listed", 1);
  ASSERT_TRUE(in_step.equal) << why(in_step);
  for (const std::string& order : kOrders) {
    const RealRun found = run_in(program, order, 1);
    EXPECT_TRUE(found.equal) << order << ": " << why(found);
    EXPECT_EQ(found.compared, in_step.compared);
    EXPECT_EQ(found.sent, in_step.sent) << order;
  }
}

INSTANTIATE_TEST_SUITE_P(OfTheCatalogue, Queues, ::testing::ValuesIn(few_catalogue_jobs()));

/// How many mutants were judged, and how many of them differ under some order.
struct Judged {
  int mutants = 0;
  int differing = 0;
};

void expect_agreement(const std::string& name, const Program& mutant, Judged& judged) {
  const Verdict verdict = check(mutant);
  const bool only_order = std::ranges::all_of(
      verdict.findings, [](const CheckFinding& f) { return f.condition == Condition::order; });
  if (!only_order || std::ranges::any_of(verdict.findings, is_hidden)) return;
  bool differs = false;
  for (const char* order : {"early", "late", "seeded=1", "seeded=2", "seeded=3", "seeded=4"}) {
    // A limit of the norm that acts on every gradient, so that the norm matters.
    const RealRun found =
        run(mutant, {.steps = 1, .meanings = {.clip = 1e-3}, .order = queue_order_from(order)});
    differs = differs || !found.equal;
  }
  EXPECT_EQ(differs, !verdict.equivalent) << name;
  ++judged.mutants;
  judged.differing += differs ? 1 : 0;
}

// Mutants that only the order of queues breaks differ, or are stuck, under some order; where check
// has nothing to say they are equal under all.
TEST(OrderMutants, DifferUnderSomeOrder) {
  Judged judged;
  for (const CatalogueJob& job :
       {CatalogueJob{"gpt2", "dp=2:zero3"}, CatalogueJob{"gpt2", "dp=2:zero1+offload(activations)"},
        CatalogueJob{"llama-3.1-8b", "pp=2:1f1b"}}) {
    const Program program = lower_small(load(job));
    for (const std::string word : {"drop_wait(wait", "drop_record(record"}) {
      for (int nth = 1; nth <= 10; ++nth) {
        const std::string fault = word + ", nth=" + std::to_string(nth) + ")";
        expect_agreement(job.placement + " " + fault, with_faults(program, {fault_from(fault)}),
                         judged);
      }
    }
  }
  EXPECT_GE(judged.mutants, 56);
  EXPECT_GE(judged.differing, 54);
}

}  // namespace
}  // namespace testing
}  // namespace placet
