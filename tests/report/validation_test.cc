#include "report/validation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace placet {
namespace {

// Two rows: 10 GiB measured, 11 and 8 predicted. Without the summaries.
Validation bare_rows() {
  Validation validation{.table = "runs.csv", .rows = 3, .scorable = 2, .predicted = 2};
  const double gib = 1073741824;
  for (const double predicted : {11.0, 8.0}) {
    validation.predictions.push_back({.labels = {.row_id = "r" + std::to_string(int(predicted)),
                                                 .source = "s",
                                                 .model = "m",
                                                 .engine = "e@1",
                                                 .placement = "dp=8:zero1",
                                                 .tensor_degree = 1,
                                                 .layer_degree = 1},
                                      .measure = "reserved",
                                      .measured = 10 * gib,
                                      .predicted = predicted * gib,
                                      .error = predicted / 10 - 1});
  }
  validation.skipped.push_back({.row_id = "r3", .reason = "hidden is not stated"});
  validation.fits.push_back({.ran_out = true, .grade = FitGrade::too_large});
  validation.facts.push_back({"e@1", "prefetch", "0", "a page", 2});
  return validation;
}

Validation two_rows() { return summarized(bare_rows()); }

TEST(ValidationReportTest, ToleranceIsTheLargestMeanError) {
  const Validation validation = two_rows();  // errors +10 % and -20 %: mean 15 %
  EXPECT_TRUE(is_within(validation, {}));
  EXPECT_TRUE(is_within(validation, {.tolerance = 0.151}));
  EXPECT_FALSE(is_within(validation, {.tolerance = 0.149}));
  EXPECT_FALSE(is_within(Validation{}, {.tolerance = 1}));  // nothing scored is not good
  EXPECT_TRUE(is_within(Validation{}, {}));
}

TEST(ValidationReportTest, WhatIsAssumedIsNamedByColumn) {
  Validation validation = two_rows();
  validation.facts.push_back({std::string(kAssumed), "src: mlp_type", "gelu", "a paper", 1});
  validation.facts.push_back({std::string(kAssumed), "src: mlp_type", "swiglu", "a paper", 1});
  validation.facts.push_back({std::string(kAssumedFromTable), "src: host_us", "9", "times", 2});
  const std::string text = validation_text(validation, {}, {.width = 100});
  EXPECT_NE(text.find("2 predicted. No constant of memory is fitted to a row.\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("Assumed, from other sources: mlp_type (2 rows).\n"), std::string::npos);
  EXPECT_NE(text.find("Assumed, read off the table's own figures: host_us (2 rows).\n"),
            std::string::npos);
}

TEST(ValidationReportTest, JsonHasTheKeysOfTheInterface) {
  const auto json =
      nlohmann::json::parse(validation_json(two_rows(), {.tolerance = 0.2, .constants = true}));
  EXPECT_EQ(json["schema"], "placet.validation/1");
  EXPECT_EQ(json["rows"], 3);
  EXPECT_EQ(json["scorable"], 2);
  EXPECT_EQ(json["predicted"], 2);
  EXPECT_EQ(json["skipped"][0]["row_id"], "r3");
  EXPECT_EQ(json["skipped"][0]["reason"], "hidden is not stated");
  EXPECT_NEAR(json["memory"]["mean_abs_error"], 0.15, 1e-12);
  EXPECT_NEAR(json["memory"]["bias"], -0.05, 1e-12);
  EXPECT_EQ(json["memory"]["within"]["0.18"], 0.5);
  EXPECT_EQ(json["memory"]["within"]["0.02"], 0.0);
  EXPECT_TRUE(json["time"]["mean_abs_error"].is_null());
  EXPECT_TRUE(json["time"]["rank_correlation"].is_null());
  EXPECT_EQ(json["oom"]["tp"], 1);
  EXPECT_EQ(json["groups"]["stated"]["rows"], 2);
  EXPECT_EQ(json["groups"]["assumed"]["rows"], 0);
  EXPECT_EQ(json["by"]["s"]["rows"], 2);
  EXPECT_EQ(json["by"]["m"]["rows"], 2);
  EXPECT_EQ(json["by_tp"]["1"]["rows"], 2);
  EXPECT_EQ(json["predictions"][1]["measured"], 10737418240);
  EXPECT_NEAR(json["predictions"][1]["error"], -0.2, 1e-12);
  EXPECT_EQ(json["within_tolerance"], true);
  EXPECT_EQ(json["constants"][0]["key"], "prefetch");
  EXPECT_EQ(json["constants"][0]["rows"], 2);
}

TEST(ValidationReportTest, TextFitsTheWidthAndNamesTheWorstRow) {
  const std::string text =
      validation_text(two_rows(), {.tolerance = 0.1, .constants = true}, {.width = 80});
  EXPECT_NE(text.find("3 rows, 2 scorable, 2 predicted"), std::string::npos);
  EXPECT_NE(text.find("r8"), std::string::npos);
  EXPECT_NE(text.find("hidden is not stated"), std::string::npos);
  EXPECT_NE(text.find("Mean error 15.00 % is above the tolerance 10.00 %."), std::string::npos);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    EXPECT_LE(end - begin, 80U) << text.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST(ValidationReportTest, ATableWithoutScorableRowsSaysSo) {
  const Validation none = summarized({.table = "runs.csv", .rows = 1});
  const auto json = nlohmann::json::parse(validation_json(none, {}));
  EXPECT_EQ(json["memory"]["rows"], 0);
  EXPECT_TRUE(json["memory"]["mean_abs_error"].is_null());
  EXPECT_NE(validation_text(none, {}, {}).find("0 scorable"), std::string::npos);
}

bool stands_in(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A table of one measure and one engine has nothing to tell apart; a second of each is shown.
TEST(ValidationReportTest, GroupsAreTablesWhereThereAreTwo) {
  const std::string one = validation_text(two_rows(), {}, {.width = 100});
  EXPECT_FALSE(stands_in(one, "by measure")) << one;
  EXPECT_FALSE(stands_in(one, "by engine")) << one;
  Validation validation = bare_rows();
  validation.predictions[1].measure = "activations";
  validation.predictions[1].labels.engine = "f@2";
  const std::string two = validation_text(summarized(std::move(validation)), {}, {.width = 100});
  EXPECT_TRUE(stands_in(two, "\nby measure ")) << two;
  EXPECT_TRUE(stands_in(two, "\nactivations ")) << two;
  EXPECT_TRUE(stands_in(two, "\nreserved ")) << two;
  EXPECT_TRUE(stands_in(two, "\nby engine ")) << two;
  EXPECT_TRUE(stands_in(two, "\nf@2 ")) << two;
}

// The row at +10 % was measured near the capacity, the one at -20 % was not.
TEST(ValidationReportTest, RowsNearTheCapacityStandBesideTheOthers) {
  Validation validation = bare_rows();
  validation.predictions[0].near_limit = true;
  const auto text = validation_text(summarized(std::move(validation)), {}, {.width = 100});
  EXPECT_TRUE(stands_in(text, "\nnear capacity       1  10.00 %")) << text;
  EXPECT_TRUE(stands_in(text, "\nnot near it         1  20.00 %")) << text;
}

}  // namespace
}  // namespace placet
