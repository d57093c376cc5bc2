// Jobs to configurations and back.
#include "interop/export.h"

#include <gtest/gtest.h>

#include <functional>

#include "round_trip.h"
#include "units/error.h"

namespace placet {
namespace {

std::string text_of(const Exported& exported, const std::string& name) {
  for (const ExportedFile& file : exported.files) {
    if (file.name == name) return file.text;
  }
  return "";
}

// Whether a text holds each line.
void expect_lines(const std::string& text, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\nin\n" << text;
  }
}

// 64 samples over 2 copies of 4 devices that shard, one at a time.
TEST(ExportTest, TomlNamesDegreesBatchAndRecomputation) {
  JobRequest job = base_request("rep=2:ddp dp=4:fsdp");
  job.recompute = "every=2";
  job.clip = 0.5;
  const Exported exported = export_job(find_catalog(), job, "torchtitan");
  EXPECT_EQ(exported.dialect, "torchtitan@2026.02");
  EXPECT_TRUE(exported.unsaid.empty());
  expect_lines(text_of(exported, "train.toml"),
               {"name = \"llama3\"\nflavor = \"8B\"\n", "seq_len = 4096\n",
                "local_batch_size = 1\n", "global_batch_size = 64\n", "max_norm = 0.5\n",
                "data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4\n",
                "mode = \"selective\"\nselective_ac_option = 2\n"});
  expect_lines(text_of(exported, "run.slurm"), {"#SBATCH --nodes=1\n", "--nproc-per-node 8 "});
}

TEST(ExportTest, ArgumentsNameStagesChunksAndTheModelsSizes) {
  const Exported exported = export_job(
      find_catalog(), base_request("pp=2:interleaved(2) dp=2:zero1 tp=2:tp+sp"), "megatron");
  EXPECT_TRUE(exported.unsaid.empty());
  expect_lines(text_of(exported, "launch.sh"),
               {"--num-layers 32 ", "--ffn-hidden-size 14336 ", "--num-query-groups 8 ", "--bf16 ",
                "--tensor-model-parallel-size 2 ", "--sequence-parallel ",
                "--pipeline-model-parallel-size 2 ", "--num-virtual-stages-per-pipeline-rank 2 ",
                "--use-distributed-optimizer "});
}

// 64 samples on 8 devices, one at a time: 8 micro-batches.
TEST(ExportTest, JsonNamesTheBatchInItsThreeWords) {
  const Exported exported =
      export_job(find_catalog(), base_request("dp=8:zero3+offload(optimizer)"), "deepspeed");
  EXPECT_TRUE(exported.unsaid.empty());
  expect_lines(text_of(exported, "ds_config.json"),
               {"\"train_batch_size\": 64,", "\"train_micro_batch_size_per_gpu\": 1,",
                "\"gradient_accumulation_steps\": 8,", "\"stage\": 3,", "\"device\": \"cpu\""});
  EXPECT_EQ(exported.beside.at("seq"), "4096");
}

// This engine shards all states or none.
TEST(ExportTest, WhatCannotBeSaidIsNamedWithTheNearest) {
  const Exported exported = export_job(find_catalog(), base_request("dp=8:zero1"), "torchtitan");
  const std::vector<JobDifference> expected = {
      {.word = "placement", .one = "dp=8:zero1", .other = "dp=8:zero3"}};
  EXPECT_EQ(exported.unsaid, expected);
}

TEST(ExportTest, AnotherEngineThanTheJobsIsRefused) {
  JobRequest job = base_request("dp=8:zero1");
  job.engine = "placet@1";
  const Exported exported = export_job(find_catalog(), job, "nanotron");
  ASSERT_FALSE(exported.unsaid.empty());
  EXPECT_EQ(exported.unsaid.back().word, "engine");
  EXPECT_EQ(exported.unsaid.back().one, "placet@1");
}

TEST(ExportTest, AnEnginesOtherNameIsItsDialect) {
  EXPECT_EQ(export_job(find_catalog(), base_request("dp=8:zero1"), "ds").dialect, "deepspeed@0.19");
}

TEST(ExportTest, UnknownDialectIsRefusedWithThoseThatCanBeWritten) {
  try {
    export_job(find_catalog(), base_request("dp=8:zero1"), "megaton");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.fault().where, "--to");
    EXPECT_NE(error.fault().allowed.find("megatron@2026"), std::string::npos);
  }
}

TEST(ExportTest, WhatIsWrittenReadsAsTheJob) {
  for (const std::string& dialect : sayable_dialects()) round_trips(dialect, 25);
}

// --- differences of meaning

std::vector<std::string> words_that_differ(const JobRequest& one, const JobRequest& other) {
  const Catalog catalog = find_catalog();
  std::vector<std::string> words;
  for (const JobDifference& d : differences_of(load_job(catalog, one), load_job(catalog, other))) {
    words.push_back(d.word);
  }
  return words;
}

TEST(DiffTest, SpellingIsNoDifference) {
  EXPECT_TRUE(words_that_differ(base_request("dp=8:fsdp"), base_request("data=8:zero3")).empty());
  EXPECT_TRUE(
      words_that_differ(base_request("dp=8:fsdp"), base_request("dp=8:zero3 tp=1:tp")).empty());
}

TEST(DiffTest, EachWordThatMeansSomethingElseIsNamed) {
  const JobRequest base = base_request("dp=8:zero1");
  using Change = std::function<void(JobRequest&)>;
  const std::vector<std::pair<std::string, Change>> changes = {
      {"model", [](JobRequest& job) { job.model = "llama-2-7b"; }},
      {"placement", [](JobRequest& job) { job.placement = "dp=8:zero2"; }},
      {"seq", [](JobRequest& job) { job.sequence = 2048; }},
      {"global-batch", [](JobRequest& job) { job.global_batch = 128; }},
      {"micro-batch", [](JobRequest& job) { job.micro_batch = 2; }},
      {"recompute", [](JobRequest& job) { job.recompute = "full"; }},
      {"precision", [](JobRequest& job) { job.precision = "fp32"; }},
      {"optimizer", [](JobRequest& job) { job.optimizer = "sgd"; }},
      {"clip", [](JobRequest& job) { job.clip = 1; }}};
  for (const auto& [word, change] : changes) {
    JobRequest other = base;
    change(other);
    EXPECT_EQ(words_that_differ(base, other), std::vector<std::string>{word});
  }
}

}  // namespace
}  // namespace placet
