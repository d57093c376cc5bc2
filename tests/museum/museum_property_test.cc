// Every bug of data/bugs is found under its condition, the algebraic run tells it apart where
// values are concerned, what it is made from is right, and docs/bugs.md shows what is printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "algebra/verify.h"
#include "catalog/bug_catalog.h"
#include "catalog/file_text.h"
#include "check/check.h"
#include "lower/lower.h"
#include "lower/small.h"
#include "program/fault.h"
#include "program/text.h"
#include "report/bug.h"
#include "report/verdict.h"

namespace placet::testing {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

Program program_of(const Bug& bug, bool small) {
  if (bug.job) {
    const Job job = load_job(find_catalog(), *bug.job);
    return small ? lower_small(job) : lower(job);
  }
  return program_from(read_file_text(bug.program, kMostBytes, "a step program"), bug.name);
}

Program wrong_program_of(const Bug& bug, bool small) {
  std::vector<Fault> faults;
  for (const std::string& words : bug.faults) faults.push_back(fault_from(words));
  return with_faults(program_of(bug, small), faults);
}

const std::string& page() {
  static const std::string kPage =
      read_file_text(std::string(PLACET_SOURCE_DIR) + "/docs/bugs.md", kMostBytes, "the page");
  return kPage;
}

class Museum : public ::testing::TestWithParam<std::string> {
 protected:
  Bug bug_ = load_bug(find_catalog(), GetParam());
};

TEST_P(Museum, WhatTheBugIsPutIntoIsRight) {
  if (!bug_.is_visible()) GTEST_SKIP() << bug_.not_visible;
  const Program program = program_of(bug_, false);
  EXPECT_TRUE(check(program).equivalent);
  EXPECT_TRUE(is_right(program, *known_reference(program)));
  EXPECT_TRUE(verify(program_of(bug_, true)).equal);
}

TEST_P(Museum, TheBugIsFoundAndToldAsOnThePage) {
  EXPECT_NE(page().find("### " + bug_.name + " "), std::string::npos);
  if (!bug_.is_visible()) {
    EXPECT_NE(page().find(bug_.not_visible), std::string::npos);
    return;
  }
  const Program wrong = wrong_program_of(bug_, false);
  const Verdict verdict = check(wrong);
  EXPECT_FALSE(verdict.equivalent);
  EXPECT_FALSE(is_right(wrong));
  EXPECT_FALSE(is_right(wrong, *known_reference(program_of(bug_, false))));
  const auto finding = finding_with(verdict, bug_.condition, bug_.finding);
  ASSERT_TRUE(finding.has_value()) << verdict_text(verdict, {.width = 100});
  const std::string told =
      "$ " + call_of(bug_) + "\n\n" + finding_text(*finding, {.width = 100}) + "```";
  EXPECT_NE(page().find(told), std::string::npos) << told;
}

// Numbers know nothing of streams: what breaks the order only is the same training there.
TEST_P(Museum, TheNumbersDifferWhereValuesAreConcerned) {
  if (!bug_.is_visible()) GTEST_SKIP() << bug_.not_visible;
  EXPECT_EQ(verify(wrong_program_of(bug_, true)).equal, bug_.condition == "order");
}

std::string name_of_case(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(OfBugs, Museum, ::testing::ValuesIn(names_in(find_catalog(), "bugs")),
                         name_of_case);

TEST(MuseumTest, NoBugIsOnThePageThatTheCatalogueDoesNotHave) {
  const std::vector<std::string> names = names_in(find_catalog(), "bugs");
  std::istringstream lines(page());
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("### B")) continue;
    const std::string name = line.substr(4, line.find(' ', 4) - 4);
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
  }
}

}  // namespace
}  // namespace placet::testing
