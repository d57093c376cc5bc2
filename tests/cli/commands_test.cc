// `placet validate --commands`: the line of a row, typed by a plain user, gives the row's figure.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/program_run.h"

namespace placet {
namespace {

using Json = nlohmann::json;

class CommandsTest : public testing::TestWithParam<const char*> {};

// Every seventh row of those with a time, at most four: the positions do not depend on the rows'
// content.
TEST_P(CommandsTest, TheLineOfARowGivesItsFigure) {
  const std::string folder =
      (std::filesystem::temp_directory_path() / (std::string("placet-commands-") + GetParam()))
          .string();
  const Result validated = run("validate " PLACET_SOURCE_DIR "/data/validation/tables/" +
                               std::string(GetParam()) + ".csv --json --commands " + folder);
  ASSERT_EQ(validated.status, 0) << validated.err;
  const Json result = Json::parse(validated.out);
  std::map<std::string, double> steps;
  for (const Json& one : result["predictions"]) {
    if (one["measure"] == "step") steps[one["row_id"]] = one["predicted"];
  }
  ASSERT_FALSE(steps.empty());
  int tried = 0;
  const Json& commands = result["commands"];
  for (std::size_t i = 0; i < commands.size() && tried < 4; i += 7) {
    const auto step = steps.find(commands[i]["row_id"].get<std::string>());
    if (step == steps.end()) continue;
    const std::string line = commands[i]["command"];
    ASSERT_TRUE(line.starts_with("placet "));
    const Result played = run(line.substr(7) + " --json");
    ASSERT_LE(played.status, 1) << line << "\n" << played.err;
    EXPECT_NEAR(Json::parse(played.out)["step_seconds"].get<double>() / step->second, 1, 1e-9)
        << line;
    ++tried;
  }
  EXPECT_GE(tried, 1);
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Tables, CommandsTest,
                         testing::Values("torchtitan", "dgxc_benchmarking", "fms_fsdp", "internevo",
                                         "literature", "maxtext_tpu", "nemo_24_07", "primus_amd",
                                         "jeanzay_v100", "h100_one_device"));

TEST(CommandsTest, WithoutJsonTheLinesStandUnderTheirRows) {
  const std::string folder =
      (std::filesystem::temp_directory_path() / "placet-commands-text").string();
  const Result result =
      run("validate " PLACET_SOURCE_DIR "/data/validation/tables/llmc.csv --commands " + folder);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with("# llmc-0001\nplacet simulate ")) << result.out;
  std::filesystem::remove_all(folder);
}

TEST(ExperimentTest, AnswersAndDrawsWhatTheTheorySays) {
  const std::string page =
      (std::filesystem::temp_directory_path() / "placet-experiment.html").string();
  const Result told = run("run --experiment communication --json --html " + page);
  ASSERT_EQ(told.status, 0) << told.err;
  const Json json = Json::parse(told.out);
  EXPECT_EQ(json["holds"], true);
  EXPECT_EQ(json["facts"][0]["found"], "3/2");
  EXPECT_NE(read(page).find("counted at the communicator"), std::string::npos);
  std::filesystem::remove(page);
  const Result wrong = run("run --experiment communication --steps 4");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("--json or --html"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace placet
