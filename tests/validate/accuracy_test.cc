// How near the predictions are to what others measured: bounds that a change must not break. They
// are no aims and nothing is tuned to them; the figures themselves stand in the report.
#include <gtest/gtest.h>

#include <cmath>

#include "validate/validate.h"

namespace placet {
namespace {

Validation validate_table(const std::string& name) {
  const Table table = read_table(PLACET_SOURCE_DIR "/data/validation/tables/" + name);
  return validate(Catalog{PLACET_SOURCE_DIR "/data"}, table, {});
}

double share_right(const Confusion& counts) {
  const auto right = counts.true_positive + counts.true_negative;
  const auto wrong = counts.false_positive + counts.false_negative;
  return static_cast<double>(right) / static_cast<double>(right + wrong);
}

TEST(AccuracyTest, PlaybookRuns) {
  const Validation validation = validate_table("ultrascale_playbook.csv");
  EXPECT_EQ(validation.scorable, 2595);
  EXPECT_EQ(validation.predicted, validation.scorable);
  EXPECT_LE(validation.memory.mean_abs, 0.07);
  EXPECT_LE(std::abs(validation.memory.bias), 0.02);
  EXPECT_GE(validation.memory.within.back(), 0.95);  // within 18 %
  EXPECT_LE(validation.by_measure.at("states").mean_abs, 0.03);
  EXPECT_GE(share_right(validation.out_of_memory), 0.95);
}

TEST(AccuracyTest, ShardedRuns) {
  const Validation validation = validate_table("torchtitan.csv");
  EXPECT_EQ(validation.scorable, 22);
  EXPECT_EQ(validation.predicted, validation.scorable);
  EXPECT_LE(validation.memory.mean_abs, 0.08);
  EXPECT_EQ(share_right(validation.out_of_memory), 1);
}

TEST(AccuracyTest, LongSequencesWithTheOptimizerOnTheHost) {
  const Validation validation = validate_table("ml_engineering_h200_b200.csv");
  EXPECT_EQ(validation.predicted, 12);
  EXPECT_LE(validation.memory.mean_abs, 0.08);
}

}  // namespace
}  // namespace placet
