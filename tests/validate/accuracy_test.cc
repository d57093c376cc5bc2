// How near the predictions are to what others measured: bounds that a change must not break. They
// are no aims and nothing is tuned to them; the figures themselves stand in the report.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>

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
  EXPECT_EQ(validation.scorable, 30);
  EXPECT_EQ(validation.predicted, validation.scorable);
  EXPECT_LE(validation.memory.mean_abs, 0.08);
  EXPECT_EQ(share_right(validation.out_of_memory), 1);
}

TEST(AccuracyTest, LongSequencesWithTheOptimizerOnTheHost) {
  const Validation validation = validate_table("ml_engineering_h200_b200.csv");
  EXPECT_EQ(validation.predicted, 12);
  EXPECT_LE(validation.memory.mean_abs, 0.08);
}

// One device, bytes as its allocator counts them: what is alive follows from the engine's facts.
TEST(AccuracyTest, OneDevice) {
  const Validation validation = validate_table("h100_one_device.csv");
  EXPECT_EQ(validation.predicted, 79);
  EXPECT_LE(validation.by_measure.at("allocated").mean_abs, 0.01);
  EXPECT_LE(validation.by_measure.at("reserved").mean_abs, 0.03);
  EXPECT_LE(validation.by_engine.at("hf-trainer@5+foreach").mean_abs, 0.01);
  EXPECT_EQ(validation.out_of_memory.false_negative + validation.out_of_memory.false_positive, 0);
  EXPECT_LE(validation.time.mean_abs, 0.1);
}

// Models of transformers under autocast, in bf16 alone and under fully_shard.
// No constant comes from the table.
TEST(AccuracyTest, ModelsOfTransformersOnOneDevice) {
  const Validation validation = validate_table("h200_one_device.csv");
  EXPECT_EQ(validation.predicted, 76);
  EXPECT_LE(validation.by_measure.at("allocated").mean_abs, 0.01);
  EXPECT_LE(validation.by_measure.at("reserved").mean_abs, 0.02);
  EXPECT_EQ(validation.out_of_memory.false_negative, 0);
  EXPECT_LE(validation.out_of_memory.false_positive, 1);
  EXPECT_LE(validation.time.mean_abs, 0.11);
}

// Step times: what a table's mean error and bias must stay below.
struct TimeBound {
  const char* table;
  std::int64_t rows;
  double mean_abs;
  double bias;
};

void PrintTo(const TimeBound& bound, std::ostream* out) { *out << bound.table; }

class StepTimeTest : public testing::TestWithParam<TimeBound> {};

TEST_P(StepTimeTest, StaysNearTheMeasurements) {
  const Validation validation = validate_table(GetParam().table);
  EXPECT_EQ(validation.time.rows, GetParam().rows);
  EXPECT_LE(validation.time.mean_abs, GetParam().mean_abs);
  EXPECT_LE(std::abs(validation.time.bias), GetParam().bias);
}

INSTANTIATE_TEST_SUITE_P(Tables, StepTimeTest,
                         testing::Values(TimeBound{"korthikanti_table5.csv", 8, 0.036, 0.04},
                                         TimeBound{"megatron_sc21_table1.csv", 10, 0.045, 0.045},
                                         TimeBound{"vtrain_multi.csv", 78, 0.075, 0.045},
                                         TimeBound{"literature.csv", 24, 0.08, 0.07},
                                         TimeBound{"ultrascale_playbook.csv", 887, 0.1, 0.045},
                                         TimeBound{"llmfoundry_mpt.csv", 155, 0.045, 0.04},
                                         TimeBound{"nemo_24_07.csv", 24, 0.08, 0.05},
                                         TimeBound{"torchtitan.csv", 28, 0.08, 0.06},
                                         TimeBound{"dgxc_benchmarking.csv", 72, 0.052, 0.03}));

// Tables of which no figure was used: what they show is how far the theory carries.
INSTANTIATE_TEST_SUITE_P(Held, StepTimeTest,
                         testing::Values(TimeBound{"jeanzay_v100.csv", 72, 0.25, 0.22},
                                         TimeBound{"fms_fsdp.csv", 4, 0.03, 0.02},
                                         TimeBound{"llmc.csv", 4, 0.06, 0.06},
                                         TimeBound{"primus_amd.csv", 6, 0.1, 0.04},
                                         TimeBound{"internevo.csv", 54, 0.1, 0.1},
                                         TimeBound{"nemo_launcher_a100.csv", 11, 0.06, 0.04},
                                         TimeBound{"nemo_long_sequence.csv", 9, 0.04, 0.03},
                                         TimeBound{"maxtext_tpu.csv", 40, 0.12, 0.1}));

TEST(AccuracyTest, LayoutsAreRankedAsTheyWereMeasured) {
  const Validation validation = validate_table("ultrascale_playbook.csv");
  ASSERT_TRUE(validation.rank_correlation.has_value());
  EXPECT_GE(*validation.rank_correlation, 0.9);
}

}  // namespace
}  // namespace placet
