// What is said of runs on real numbers.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/run.h"

namespace placet {
namespace {

RunSheet trained(int steps) {
  RunSheet sheet{.judged = {.title = "a run"}, .run = {.ranks = 2, .equal = true}};
  for (int step = 1; step <= steps; ++step)
    sheet.run.steps.push_back({.step = step, .last = steps});
  return sheet;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(RunReportTest, ALongTableOfLossesSaysThatItIsCut) {
  EXPECT_FALSE(says(run_page(trained(200)), "the first "));
  EXPECT_TRUE(says(run_page(trained(201)), "the first 200 of 201 steps"));
}

TEST(RunReportTest, FindingsOfTheWatchStandInTheSentence) {
  RunSheet sheet = trained(1);
  const TextStyle plain;
  EXPECT_FALSE(says(run_text(sheet, plain), "--watch"));
  sheet.is_watched = true;
  sheet.run.watched.resize(2);
  EXPECT_TRUE(says(run_text(sheet, plain), "; 2 findings of --watch\n"));
  TextStyle coloured;
  coloured.colour = true;
  EXPECT_TRUE(
      says(run_text(trained(1), coloured), inked(coloured, Ink::green, "Equal to the bit")));
  EXPECT_TRUE(says(run_text(sheet, coloured), inked(coloured, Ink::red, "Equal to the bit")));
}

TEST(RunReportTest, TracesSayWhetherOperationsWereLeftOut) {
  RunSheet sheet = trained(1);
  const auto is_cut = [&] {
    return nlohmann::json::parse(ran_trace_json(sheet))["otherData"]["cut_short"].get<bool>();
  };
  EXPECT_FALSE(is_cut());
  sheet.run.spans_cut_short = true;
  EXPECT_TRUE(is_cut());
}

TEST(RunReportTest, AStepOfAResumedRunIsOneOfAll) {
  EXPECT_TRUE(step_text({.step = 10, .last = 12}).starts_with("step 10 of 12:"));
}

// Losses of 3 and 1 in a picture of 640 x 160: from its upper left to its lower right.
TEST(RunReportTest, TheLineOfTheLossFillsItsPicture) {
  RunSheet sheet = trained(2);
  sheet.run.steps[0].ranks = 3;
  sheet.run.steps[1].ranks = 1;
  const std::string page = run_page(sheet);
  EXPECT_TRUE(says(page, "points=\"0.0,0.0 640.0,160.0 \"")) << page;
  EXPECT_TRUE(says(page, "from 1 to 3<")) << page;
}

}  // namespace
}  // namespace placet
