// Model states by formula: every row exactly, to the digits that the table prints.
#include <gtest/gtest.h>

#include <cmath>

#include "validate/own_catalog.h"
#include "validate/validate.h"

namespace placet {
namespace {

Validation validate_text(const std::string& rows) {
  const Table table = parse_table(
      "row_id,source_id,params_billion,dp,zero_stage,gpu_gb_derived,gpu_gb_estimated\n" + rows,
      "t.csv");
  return validate(kCatalog, table, {});
}

// 7.5e9 parameters: 2 + 2 + 12 bytes each are 120 GB; over 64 devices stage 1 keeps 4 + 12/64
// bytes: 31.40625 GB; stage 2 keeps 2 + 14/64: 16.640625; stage 3 16/64: 1.875.
TEST(StatesTest, PaperTable) {
  const Validation validation = validate_text(
      "a,f,7.5,any,0,120,\n"
      "b,f,7.5,64,1,31.40625,\n"
      "c,f,7.5,64,2,16.640625,\n"
      "d,f,7.5,64,3,1.875,\n");
  ASSERT_EQ(validation.predictions.size(), 4U);
  for (const Prediction& prediction : validation.predictions) {
    EXPECT_EQ(prediction.predicted, prediction.measured) << prediction.labels.row_id;
  }
  EXPECT_EQ(validation.memory.worst_abs, 0);
  EXPECT_EQ(validation.groups.at(RowGroup::stated).rows, 4);
}

TEST(StatesTest, EstimatesOfOtherToolsAreNotScored) {
  const Validation validation = validate_text("a,estimator,2.851,8,2,,15.93\n");
  EXPECT_EQ(validation.scorable, 0);
  ASSERT_EQ(validation.skipped.size(), 1U);
  EXPECT_FALSE(validation.skipped.front().scorable);
}

// A printed figure of six significant digits stands for all values that round to it.
double half_of_last_digit(double printed) {
  return 0.5 * std::pow(10.0, std::floor(std::log10(printed)) - 5);
}

TEST(StatesTest, EveryFormulaRowToThePrintedDigits) {
  const Table table = read_table(PLACET_SOURCE_DIR "/data/validation/tables/zero_model_states.csv");
  const Validation validation = validate(kCatalog, table, {});
  EXPECT_EQ(validation.rows, 72);
  EXPECT_EQ(validation.predicted, 57);
  for (const Prediction& prediction : validation.predictions) {
    const double printed = prediction.measured / 1e9;
    EXPECT_LE(std::abs(prediction.predicted / 1e9 - printed), half_of_last_digit(printed) * 1.001)
        << prediction.labels.row_id;
  }
}

}  // namespace
}  // namespace placet
