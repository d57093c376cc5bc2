// Saving, going on and resharding, by the program itself: what it writes, and what it says of
// folders that are none, broken ones and full disks.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/program_run.h"

namespace placet {
namespace {

constexpr const char* kConfig =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 48,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 16,
        "vocab_size": 40, "rms_norm_eps": 1e-5, "hidden_act": "silu",
        "tie_word_embeddings": false})";

/// A folder with a small model, and runs of it.
class CheckpointCommands : public ::testing::Test {
 protected:
  CheckpointCommands() : config_(folder_.write("model.json", kConfig)) {}

  std::string job(const std::string& placement) const {
    return "run " + config_ + " --seq 8 --global-batch 4 --placement \"" + placement + "\" ";
  }
  std::string path(const std::string& name) const { return folder_.file(name); }
  void save(const std::string& placement, int steps, const std::string& name) const {
    const Result result =
        run(job(placement) + "--steps " + std::to_string(steps) + " --save " + path(name));
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_TRUE(has(result.out, "saved")) << result.out;
  }
  /// Exit status 2 and one message with these words.
  void expect_refused(const std::string& arguments, const std::string& words,
                      const std::string& before = "") const {
    const Result result = run(arguments, before);
    EXPECT_EQ(result.status, 2) << arguments << result.out;
    EXPECT_TRUE(has(result.err, words)) << result.err;
    EXPECT_EQ(result.err.rfind("placet: "), 0U) << result.err;
    EXPECT_EQ(result.out, "");
  }

  Folder folder_;
  std::string config_;
};

bool same_folders(const std::string& a, const std::string& b) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(a)) {
    const std::string name = entry.path().filename().string();
    if (read(a + "/" + name) != read(b + "/" + name)) return false;
    ++files;
  }
  return files > 1;
}

TEST_F(CheckpointCommands, AReshardedFolderIsThatOfTheOtherPlacement) {
  save("dp=4:zero3", 1, "sharded");
  save("dp=2:ddp tp=2:tp", 1, "cut");
  save("dp=2:ddp tp=2:tp", 3, "cut-three");
  const Result turned =
      run("reshard " + path("sharded") + " --placement \"dp=2:ddp tp=2:tp\" -o " + path("turned"));
  ASSERT_EQ(turned.status, 0) << turned.err;
  EXPECT_TRUE(has(turned.out, "the state after 1 step, to the bit")) << turned.out;
  EXPECT_TRUE(same_folders(path("turned"), path("cut")));
  const Result on =
      run("run --resume " + path("turned") + " --steps 2 --save " + path("turned-three"));
  ASSERT_EQ(on.status, 0) << on.err;
  EXPECT_TRUE(same_folders(path("turned-three"), path("cut-three")));
}

TEST_F(CheckpointCommands, WrongFoldersAreRefused) {
  save("dp=2:zero3", 1, "good");
  const std::string resume = "run --resume ";
  expect_refused(resume + path("nowhere"), "is not a folder");
  expect_refused(resume + path("good") + " --placement dp=2:ddp", "placet reshard");
  expect_refused(resume + path("good") + " --placement dp=4:zero3", "the mesh dp=2");
  expect_refused(resume + path("good") + " --mode f64", "another mode than that of the checkpoint");
  expect_refused(resume + path("good") + " --optimizer sgd-momentum --steps 1", "momentum of");
  expect_refused(job("dp=2:ddp") + "--save " + path("good"), "is there already");
  expect_refused(job("dp=2:ddp") + "--save " + path("no/where"), "cannot be written");
  const std::string reshard = "reshard " + path("good") + " --placement ";
  expect_refused(reshard + "dp=2:ddp -o " + path("good"), "is there already");
  expect_refused(reshard + "dp=2:ddpp -o " + path("new"), "did you mean 'ddp'");
  expect_refused("reshard " + path("good") + " -o " + path("new"), "--placement");
  std::filesystem::copy(path("good"), path("cut"));
  std::filesystem::resize_file(path("cut/rank-00001.safetensors"), 1000);
  expect_refused(resume + path("cut"), "rank-00001.safetensors");
  std::filesystem::copy(path("good"), path("foreign"));
  std::ofstream(path("foreign/index.json")) << "{\"weight_map\": {}}";
  expect_refused(resume + path("foreign"), "weight_map");
  EXPECT_FALSE(std::filesystem::exists(path("new")));
}

// Files that were named from one folder are found from another.
TEST_F(CheckpointCommands, RelativeFilesAreFoundFromAnyFolder) {
  folder_.write("mine.json", R"({"schema": "placet.cluster/1", "name": "mine", "title": "Mine",
                                 "source": "a test", "groups": [{"device": "h100-sxm"}]})");
  const std::string words = "model.json --seq 8 --global-batch 4 --placement dp=2:ddp --steps 1 ";
  const Result saved =
      run("run " + words + "--cluster 2xmine.json --save " + path("c"), "cd " + path(".") + " &&");
  ASSERT_EQ(saved.status, 0) << saved.err;
  const Result on = run("run --resume " + path("c") + " --steps 1", "cd / &&");
  EXPECT_EQ(on.status, 0) << on.err;
}

TEST_F(CheckpointCommands, ATextIsTrainedOnAndGoneOnWith) {
  const std::string text = folder_.write("text", "words that follow words, as a text has them\n");
  const std::string twice = job("dp=2:zero3") + "--corpus " + text + " --steps 2 ";
  ASSERT_EQ(run(twice + "--save " + path("two")).status, 0);
  const Result on = run("run --resume " + path("two") + " --steps 2 --save " + path("four"));
  ASSERT_EQ(on.status, 0) << on.err;
  EXPECT_TRUE(has(on.out, "a byte a word")) << on.out;
  ASSERT_EQ(run(job("dp=2:zero3") + "--corpus " + text + " --steps 4 --save " + path("all")).status,
            0);
  EXPECT_TRUE(same_folders(path("four"), path("all")));
  folder_.write("text", "another text, which has as many bytes as it\n");
  expect_refused("run --resume " + path("two"), "is another text");
  EXPECT_EQ(run("run --resume " + path("two") + " --corpus " + path("text")).status, 0);
  expect_refused(job("dp=2:zero3") + "--meaning corpus=" + text, "is no meaning");
  const std::string other = job("dp=2:zero3") + "--corpus ";
  EXPECT_EQ(
      run(other + "'" + folder_.write("t#0123456789abcdef", "a text, as long as any") + "'").status,
      0);
  expect_refused(other + path("none"), "cannot be read");
  expect_refused(other + folder_.write("empty", ""), "is empty");
  expect_refused(other + folder_.write("short", "few"), "at least 9 bytes");
}

// Before the run: nothing is trained for a folder that cannot be written.
TEST_F(CheckpointCommands, WordsThatNoIndexHoldsAreRefused) {
  const std::string config = folder_.write("\xff.json", kConfig);
  expect_refused(
      "run '" + config + "' --seq 8 --global-batch 4 --placement dp=2:ddp --save " + path("c"),
      "not UTF-8");
}

TEST_F(CheckpointCommands, PageAndTraceAreOfWhatRan) {
  const Result result = run(job("dp=2:ddp") + "--steps 2 --watch --html " + path("page.html") +
                            " --trace " + path("trace.json"));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(has(result.out, "all of them what was written")) << result.out;
  const std::string page = read(path("page.html"));
  EXPECT_TRUE(has(page, "Equal to the bit")) << page.substr(0, 400);
  EXPECT_TRUE(has(page, "all_reduce over dp"));
  EXPECT_FALSE(has(page, "src=\"http"));
  const nlohmann::json trace = nlohmann::json::parse(read(path("trace.json")));
  std::set<int> ranks;
  std::size_t messages = 0;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ranks.insert(event.at("pid").get<int>());
    EXPECT_GE(event.at("dur").get<double>(), 0);
    messages += event.at("tid") == 1 ? 1U : 0U;
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1}));
  EXPECT_GT(messages, 0U);
}

// What looks on sees all ranks in the order of the listing: another one is not left out unsaid.
TEST_F(CheckpointCommands, WhatLooksOnTakesNoOtherOrder) {
  const std::string watched = job("dp=2:ddp") + "--steps 1 --watch ";
  expect_refused(watched + "--order seeded=7", "--watch: '--order seeded=7'");
  expect_refused(watched + "--fault \"slow(rank=0)\"", "does not go with --watch");
  expect_refused(job("dp=2:ddp") + "--order late --trace " + path("t.json"), "--trace: '--order");
  EXPECT_EQ(run(watched + "--order listed").status, 0);
}

TEST_F(CheckpointCommands, WhatTheWatchFindsIsBad) {
  const Result result =
      run(job("dp=2:ddp") + "--steps 1 --watch --fault \"skip_update(any, rank=1)\"");
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_TRUE(has(result.out, "state consistency")) << result.out;
  EXPECT_TRUE(has(result.out, " of --watch\n")) << result.out;
}

// Files of more than 64 blocks cannot be written, as on a full disk; each rank's is larger.
TEST_F(CheckpointCommands, AFullDiskLeavesNothing) {
  const std::string before = "trap '' XFSZ; ulimit -f 64; ";
  expect_refused(job("dp=2:ddp") + "--steps 1 --save " + path("new"), "cannot be written", before);
  std::size_t left = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(config_).parent_path())) {
    ++left;
  }
  EXPECT_EQ(left, 1U) << "a temporary folder is left";
}

}  // namespace
}  // namespace placet
