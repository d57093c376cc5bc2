#include "report/compare.h"

#include <gtest/gtest.h>

#include <sstream>

#include "report/hand_made.h"
#include "report/human.h"

namespace placet {
namespace {

Judged with(const char* placement, std::int64_t peak, std::int64_t sent, bool fits) {
  Judged judged = hand_made();
  Job job = *judged.job;
  job.placement_text = placement;
  judged.job = std::make_shared<const Job>(job);
  judged.derivation.peak = gigabytes(peak);
  judged.derivation.memory.front().peak = gigabytes(peak);
  judged.derivation.memory.front().reserved = gigabytes(peak);
  judged.derivation.sent = gigabytes(sent);
  judged.derivation.fit = fits ? FitGrade::fits : FitGrade::too_large;
  return judged;
}

TEST(RankTest, TheBestFitsAndSendsLeast) {
  const std::vector<Judged> all = {with("a", 100, 10, false), with("b", 60, 20, true),
                                   with("c", 30, 30, true)};
  const Ranking ranking = rank(all);
  EXPECT_EQ(ranking.best, 1U);
  EXPECT_EQ(ranking.least_memory, 2U);
  EXPECT_EQ(ranking.answer,
            "2 of 3 fit: B, C. B (b) sends the least of those, 20.0 GB per device and step, and "
            "needs 60.0 GB. C (c) needs the least memory, 30.0 GB against 60.0 GB, and sends "
            "30.0 GB (1.50x).");
}

TEST(RankTest, OneThatFits) {
  EXPECT_EQ(rank({with("a", 100, 10, false), with("b", 60, 20, true)}).answer,
            "1 of 2 fits: B. B (b) needs 60.0 GB per device and sends 20.0 GB per step. No other "
            "needs less memory.");
}

TEST(RankTest, NoneThatFits) {
  const Ranking ranking = rank({with("a", 100, 10, false), with("b", 90, 20, false)});
  EXPECT_EQ(ranking.best, 0U);
  EXPECT_EQ(ranking.answer.substr(0, 17), "None of them fits");
}

TEST(RankTest, NoneThatFitsOrKeepsTheRules) {
  Judged broken = with("b", 10, 20, true);
  broken.derivation.findings.push_back({.rule = "product", .severity = Severity::error});
  EXPECT_EQ(rank({with("a", 100, 10, false), broken}).answer,
            "None of them can be run: A does not fit; B breaks a rule.");
}

TEST(ComparisonTextTest, EachPlacementHasItsRow) {
  const std::string text =
      comparison_text({with("a", 45, 10, true), with("b", 90, 15, false)}, {.width = 120});
  EXPECT_NE(text.find("  A  a\n  B  b\n"), std::string::npos) << text;
  EXPECT_NE(text.find("2.00x  15.0 GB  1.50x  no"), std::string::npos) << text;
}

TEST(ComparisonTextTest, KeepsToTheWidth) {
  for (const int width : {60, 80, 160}) {
    std::istringstream lines(
        comparison_text({with("a", 45, 10, true), with("b", 90, 15, false)}, {.width = width}));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(columns_of(line), static_cast<std::size_t>(width)) << line;
    }
  }
}

TEST(LabelTest, GoesOnAfterZ) {
  EXPECT_EQ(label_of(0), "A");
  EXPECT_EQ(label_of(25), "Z");
  EXPECT_EQ(label_of(26), "A1");
}

// Of equals the first is the best, and nothing is traded for it.
TEST(RankTest, OfEqualsTheFirst) {
  const Ranking ranking = rank({with("a", 60, 20, true), with("b", 60, 20, true)});
  EXPECT_EQ(ranking.best, 0U);
  EXPECT_EQ(ranking.least_memory, 0U);
  EXPECT_EQ(ranking.answer,
            "All of them fit. A (a) sends the least, 20.0 GB per device and step, and needs "
            "60.0 GB. No other needs less memory.");
}

// No memory to fit into was given: only rules are judged.
TEST(RankTest, WithoutAClusterNothingFits) {
  std::vector<Judged> all = {with("a", 60, 20, true), with("b", 60, 30, true)};
  for (Judged& judged : all) judged.derivation.capacity = Bytes();
  EXPECT_TRUE(rank(all).answer.starts_with("None of them breaks a rule. A (a) sends the least,"));
  all[1].derivation.findings.push_back({.rule = "product", .severity = Severity::error});
  EXPECT_TRUE(rank(all).answer.starts_with("1 of 2 without a broken rule: A. A (a) needs "))
      << rank(all).answer;
}

}  // namespace
}  // namespace placet
