// Configurations of engines wherever a job is taken, and numbers of an engine.
#include <nlohmann/json.hpp>

#include "call/call.h"
#include "catalog/memory.h"
#include "cli/program_run.h"

namespace placet {
namespace {

constexpr const char* kNano =
    "parallelism:\n  dp: 4\n  tp: 2\n  pp: 1\n  tp_mode: REDUCE_SCATTER\n"
    "tokens:\n  micro_batch_size: 2\n  batch_accumulation_per_replica: 2\n"
    "  sequence_length: 1024\noptimizer:\n  zero_stage: 1\n";

// 4 copies take 2 samples twice: 16 a step.
constexpr const char* kSame =
    " --placement \"dp=4:zero1 tp=2:tp+sp\" --seq 1024 --micro-batch 2 --global-batch 16 "
    "--engine nanotron@2026.04 --json";

TEST(From, EverySubcommandThatTakesAJobTakesSources) {
  const Folder folder;
  const std::string file = folder.write("config.yaml", kNano);
  for (const std::string command : {"derive gpt2", "lower gpt2", "check gpt2", "verify gpt2",
                                    "simulate gpt2 --cluster h100-sxm:1"}) {
    SCOPED_TRACE(command);
    const Result from = run(command + " --from " + file + " --json");
    const Result said = run(command + kSame);
    EXPECT_EQ(from.status, said.status) << from.err;
    EXPECT_EQ(from.out, said.out);
    EXPECT_NE(from.out, "");
  }
}

TEST(From, WhatSourcesLeaveOpenIsAskedForByItsFlag) {
  const Folder folder;
  const std::string file = folder.write("config.yaml", kNano);
  const Result result = run("derive --from " + file);
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("does not say the model; expected --model NAME"), std::string::npos)
      << result.err;
}

TEST(From, PlansTakeWhatIsTrainedAndNotWhereItIs) {
  const Folder folder;
  const std::string file = folder.write("config.yaml", kNano);
  const Result result = run("plan gpt2 --cluster h100-sxm:1 --top 1 --json --from " + file);
  ASSERT_EQ(result.status, 0) << result.err;
  const auto plan = nlohmann::ordered_json::parse(result.out)["plans"][0];
  EXPECT_EQ(plan["job"]["seq"], 1024);
  EXPECT_EQ(plan["job"]["global-batch"], 16);
}

TEST(From, TheOneEntryTakesSourcesToo) {
  const Folder folder;
  const std::string file = folder.write("config.yaml", kNano);
  const Answer answer = call(
      find_catalog(), R"({"subcommand": "derive", "model": "gpt2", "from": [")" + file + R"("]})");
  EXPECT_EQ(answer.document, run("derive gpt2 --json --from " + file).out);
}

TEST(From, NumbersOfAnEngineAreSet) {
  const std::string base =
      "derive gpt2 --placement dp=8:zero3 --seq 512 --engine deepspeed --set reduce_bucket_size=";
  const auto peak = [&](const std::string& size) {
    const auto document = nlohmann::ordered_json::parse(run(base + size + " --json").out);
    return document["memory"]["peak_bytes"].get<std::int64_t>();
  };
  // The buffer in bf16 and the bucket that is put together: 2 x 2 bytes for each element less.
  EXPECT_EQ(peak("5e8") - peak("4e8"), 4 * 100'000'000);
  const Result wrong = run("derive gpt2 --placement dp=8:zero3 --engine deepspeed --set bucket=1");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("is no number that deepspeed lets one set"), std::string::npos);
}

TEST(Lint, WhatCanBeMendedIsWritten) {
  const Folder folder;
  const std::string file =
      folder.write("ds.json", "{\n  \"train_batch_size\": 8,\n  \"gradient_clipp1ng\": 1.0\n}\n");
  const Result result = run("lint --fix " + file);
  EXPECT_NE(result.out.find("+   \"gradient_clipping\": 1.0\n"), std::string::npos) << result.out;
  EXPECT_NE(read(file).find("gradient_clipping"), std::string::npos);
}

TEST(Lint, OneFileThatCannotBeReadKeepsNoOtherFromBeingChecked) {
  const Folder folder;
  const std::string broken = folder.write("a.json", "{\"train_batch_size\": 8, ");
  const std::string good =
      folder.write("ds.json", "{\n  \"train_batch_size\": 8,\n  \"gradient_clipp1ng\": 1.0\n}\n");
  const std::string foreign = folder.write("notes.txt", "nothing of an engine\n");
  const Result result = run("lint --each --fix " + broken + " " + foreign + " " + good);
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("a.json:"), std::string::npos) << result.err;
  EXPECT_NE(result.out.find("+   \"gradient_clipping\": 1.0\n"), std::string::npos) << result.out;
  EXPECT_EQ(run("lint --each " + foreign + " " + good).status, 0);
}

TEST(Lint, SourcesThatNameEachOtherAreReadOnce) {
  const Folder folder;
  const std::string one =
      folder.write("a.yaml", "base_model: gpt2\nsequence_len: 8\ndeepspeed: b.yaml\n");
  folder.write("b.yaml", "base_model: gpt2\nsequence_len: 8\ndeepspeed: a.yaml\n");
  const Result result = run("import --json " + one);
  ASSERT_NE(result.status, 2) << result.err;
  EXPECT_EQ(nlohmann::ordered_json::parse(result.out)["ledger"].size(), 6U);
}

TEST(Lint, RulesAreExplainedWithTheirSource) {
  const Result result = run("explain PL012");
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.out.find("NVIDIA/Megatron-LM#1304"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace placet
