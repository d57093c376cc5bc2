// Findings that spoke where nothing is wrong, or could not speak at all, and words that were not
// taken where another dialect leads.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "imported.h"
#include "interop/import.h"

namespace placet {
namespace {

Imported read_mended(std::vector<Source> sources, const Words& given) {
  return import_sources(find_catalog(),
                        {.sources = std::move(sources), .dialect = {}, .given = given});
}

Source mended_line(const std::string& text) {
  return parse_source(text, SourceForm::arguments, "run.sh");
}

std::string finding_text(const Imported& imported, const std::string& code) {
  const auto found = std::ranges::find(imported.findings, code, &LintFinding::code);
  return found == imported.findings.end() ? "" : found->message;
}

Imported titan_with(const std::string& converters) {
  const std::string text =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = " + converters +
      "\n[training]\nlocal_batch_size = 1\nseq_len = 8192\n"
      "[parallelism]\ndata_parallel_shard_degree = 8\n"
      "[compile]\nenable = true\n";
  return read_mended({parse_source(text, SourceForm::toml, "run.toml")}, {{"world-size", "8"}});
}

// Which names are registered: quantize.linear.*, and not what they were called before.
TEST(MendedDataTest, ConvertersOfTorchtitanByTheirRegisteredNames) {
  for (const char* right : {"[\"quantize.linear.float8\"]", "[\"quantize.linear.mx\"]"}) {
    EXPECT_FALSE(is_found(titan_with(right), "PL047")) << right;
  }
  EXPECT_TRUE(finding_text(titan_with("[\"float8\"]"), "PL047").starts_with("float8 is no"));
  EXPECT_TRUE(finding_text(titan_with("[\"mx\"]"), "PL047").starts_with("mx is no"));
  for (const char* name : {"[\"float8\"]", "[\"quantize.linear.float8\"]"}) {
    EXPECT_EQ(said_of(titan_with(name), "precision"), "fp8-current") << name;
  }
}

constexpr const char* kDeepSpeedFile =
    "{\"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": true},"
    " \"train_micro_batch_size_per_gpu\": \"auto\", \"gradient_accumulation_steps\": \"auto\"}";

TEST(MendedDataTest, DevicesThatAreIncludedCountBesideDeepSpeedsFile) {
  const Imported result = read_mended(
      {mended_line("deepspeed --include localhost:0,1,2,3 train.py --deepspeed ds.json "
                   "--model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 1 "
                   "--gradient_accumulation_steps 2 --output_dir o --bf16\n"),
       parse_source(kDeepSpeedFile, SourceForm::json, "ds.json")},
      {});
  EXPECT_EQ(said_of(result, "placement"), "dp=4:zero2");
  EXPECT_EQ(said_of(result, "global-batch"), "8");
}

constexpr const char* kAxolotlFile =
    "base_model: NousResearch/Meta-Llama-3.1-8B\nsequence_len: 2048\nmicro_batch_size: 2\n"
    "gradient_accumulation_steps: 2\n";

// Options behind axolotl's file are fields of it, and win over what it says.
TEST(MendedDataTest, AxolotlLeadsOnItsLaunchLine) {
  const Imported result =
      read_mended({mended_line("axolotl train run.yaml --micro-batch-size 4 --lora-dropout 0.1\n"),
                   parse_source(kAxolotlFile, SourceForm::yaml, "run.yaml")},
                  {{"world-size", "8"}});
  EXPECT_EQ(said_of(result, "engine"), "hf-trainer@5");
  EXPECT_EQ(said_of(result, "micro-batch"), "4");
  EXPECT_EQ(said_of(result, "global-batch"), "64");
  EXPECT_EQ(fate_of_key(result, "--lora-dropout"), Fate::understood);
}

Source launcher_file() {
  return parse_source(
      "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\n"
      "deepspeed_config:\n  gradient_accumulation_steps: 4\n  zero_stage: 2\nnum_processes: 8\n",
      SourceForm::yaml, "acc.yaml");
}

Imported launched_with(const std::string& accumulation) {
  return read_mended({mended_line("accelerate launch --config_file acc.yaml train.py "
                                  "--model_name_or_path meta-llama/Llama-3.1-8B "
                                  "--per_device_train_batch_size 1 --output_dir o --bf16 " +
                                  accumulation + "\n"),
                      launcher_file()},
                     {});
}

// Alone the launcher's number may differ from the script's; beside the trainer's own both are seen.
TEST(MendedDataTest, AccumulationOfLauncherAndTrainerIsCompared) {
  const Imported alone = read_mended({launcher_file()}, {});
  EXPECT_TRUE(is_found(alone, "PL026"));
  EXPECT_FALSE(is_found(alone, "PL027"));
  const Imported same = launched_with("--gradient_accumulation_steps 4");
  EXPECT_FALSE(is_found(same, "PL026"));
  EXPECT_FALSE(is_found(same, "PL027"));
  EXPECT_FALSE(is_found(launched_with("--gradient_accumulation_steps 2"), "PL026"));
  EXPECT_TRUE(is_found(launched_with("--gradient_accumulation_steps 2"), "PL027"));
  EXPECT_TRUE(is_found(launched_with(""), "PL027"));  // the trainer's own is then 1
  const Imported axolotl =
      read_mended({launcher_file(), parse_source(kAxolotlFile, SourceForm::yaml, "run.yaml")}, {});
  EXPECT_TRUE(is_found(axolotl, "PL027"));
}

TEST(MendedDataTest, AccumulationAtTheTopOfTheLaunchersFileIsRefusedWithItsOption) {
  const Imported result =
      read_mended({parse_source("compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\n"
                                "gradient_accumulation_steps: 4\nnum_processes: 8\n",
                                SourceForm::yaml, "acc.yaml")},
                  {});
  EXPECT_NE(finding_text(result, "PL001").find("--gradient_accumulation_steps"), std::string::npos);
}

TEST(MendedDataTest, StatedDegreesAreOneFault) {
  const Imported result = read_mended(
      {parse_source("parallelism:\n  dp: 2\n  tp: 2\n  pp: 2\ntokens:\n  micro_batch_size: 1\n"
                    "  sequence_length: 2048\n  batch_accumulation_per_replica: 4\n",
                    SourceForm::yaml, "run.yaml")},
      {{"world-size", "12"}});
  EXPECT_TRUE(is_found(result, "PL058"));
  EXPECT_FALSE(is_found(result, "PL018"));
}

// The stage of sharding given beside the file: the axis along the sequence is DeepSpeed's.
TEST(MendedDataTest, AxolotlsSequenceAxisKnowsAGivenStage) {
  std::string text = kAxolotlFile;
  text += "context_parallel_size: 2\n";
  const Imported result = read_mended({parse_source(text, SourceForm::yaml, "run.yaml")},
                                      {{"world-size", "8"}, {"zero", "3"}});
  EXPECT_EQ(said_of(result, "placement"), "dp=4:zero3 sp=2:heads+zero3");
}

}  // namespace
}  // namespace placet
