// --data, the project's and the user's folder, and `placet data`, as a user calls them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/program_run.h"

namespace placet {
namespace {

constexpr const char* kStrategy =
    R"({"schema":"placet.strategy/1","name":"NAME","description":"Mine.","sources":["me"],)"
    R"("sets":{"parameters":"R","optimizer":"S","gradients":"R"},"suggests":{"cut":"batch"}})";

class DataTest : public ::testing::Test {
 protected:
  /// A strategy file in a folder below that of the test.
  void strategy(const std::string& below, const std::string& name,
                const std::string& description = "Mine.") const {
    std::string text = kStrategy;
    text.replace(text.find("NAME"), 4, name);
    text.replace(text.find("Mine."), 5, description);
    std::filesystem::create_directories(folder_.file(below + "/strategies"));
    folder_.write(below + "/strategies/" + name + ".json", text);
  }

  /// A call from the folder of the test, which is also that of the user's configuration.
  Result call(const std::string& arguments) const {
    return run(arguments,
               "cd " + folder_.file("") + " && HOME= XDG_CONFIG_HOME=" + folder_.file("config"));
  }

  Folder folder_;
};

TEST_F(DataTest, LayersLieInTheStatedOrder) {
  strategy("config/placet", "mine", "Of the user.");
  strategy("config/placet", "users", "Of the user.");
  strategy("placet", "mine", "Of the project.");
  EXPECT_TRUE(has(call("strategies").out, "Of the project."));
  EXPECT_TRUE(has(call("explain users").out, "Of the user."));
  strategy("first", "mine", "Of the first flag.");
  strategy("second", "mine", "Of the second flag.");
  EXPECT_TRUE(has(call("--data first explain mine").out, "Of the first flag."));
  EXPECT_TRUE(has(call("explain mine --data first --data second").out, "Of the second flag."));
  EXPECT_TRUE(has(call("data list strategies --data first").out, "first/strategies/mine.json"));
  EXPECT_TRUE(has(call("strategies --names").out, "\nusers\n"));  // what completion reads
}

TEST_F(DataTest, AJobUsesThem) {
  strategy("data", "mine");
  const std::string job = "derive gpt2 --cluster h100-sxm:1 --json --placement ";
  const Result own = call(job + "dp=8:mine --data data");
  EXPECT_EQ(own.status, 0) << own.err;
  EXPECT_TRUE(has(own.out, "data of data lies over the catalogue"));
  EXPECT_EQ(call(job + "dp=8:mine").status, 2);
  EXPECT_TRUE(has(call(job + "dp=8:mime --data data").err, "did you mean 'mine'?"));
}

TEST_F(DataTest, ABrokenFileIsToldToWhoUsesIt) {
  strategy("placet", "fine");
  folder_.write("placet/strategies/broken.json", "{");
  const std::string job = "derive gpt2 --cluster h100-sxm:1 --placement ";
  EXPECT_EQ(call(job + "dp=8:zero1").status, 0);
  EXPECT_EQ(call(job + "dp=8:fine").status, 0);
  const Result broken = call(job + "dp=8:broken");
  EXPECT_EQ(broken.status, 2);
  EXPECT_TRUE(has(broken.err, "placet/strategies/broken.json")) << broken.err;
  std::filesystem::create_directories(folder_.file("placet/hardware/devices"));
  folder_.write("placet/hardware/devices/dud.json", "{");
  const Result devices = call("devices");
  EXPECT_EQ(devices.status, 0);
  EXPECT_TRUE(has(devices.out, "h100-sxm"));
  EXPECT_TRUE(has(devices.err, "placet/hardware/devices/dud.json")) << devices.err;
}

TEST_F(DataTest, CheckSaysWhatAFolderAddsHidesAndGetsWrong) {
  strategy("data", "mine");
  strategy("data", "zero1");
  const Result good = call("data check data");
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_TRUE(has(good.out, "adds   strategies mine\n")) << good.out;
  EXPECT_TRUE(has(good.out, "hides  strategies zero1 of ")) << good.out;
  EXPECT_TRUE(has(good.out, "data: files 2, findings 0\n")) << good.out;
  folder_.write("data/strategies/one.json", "{");
  folder_.write("data/strategies/two.json", "[]");
  const Result bad = call("data check data --json");
  EXPECT_EQ(bad.status, 2);
  EXPECT_TRUE(has(bad.out, "data/strategies/one.json")) << bad.out;
  EXPECT_TRUE(has(bad.out, "data/strategies/two.json")) << bad.out;
  EXPECT_TRUE(has(bad.out, "\"schema\": \"placet.data/1\"")) << bad.out;
}

TEST_F(DataTest, WhatCannotBeMeantIsRefused) {
  EXPECT_TRUE(has(call("devices --data nowhere").err, "--data: 'nowhere' is not a folder"));
  EXPECT_TRUE(has(call("data check nowhere").err, "placet data check: 'nowhere' is not a folder"));
  EXPECT_TRUE(has(call("data check").err, "the folder is missing"));
  EXPECT_TRUE(has(call("data list device").err, "did you mean 'devices'?"));
  EXPECT_EQ(call("data chek x").status, 2);
}

}  // namespace
}  // namespace placet
