// Launch scripts as a shell runs them: what is added to variables, what runs where a test fails,
// choices on one line, groups behind tests, texts for other programs.
#include <gtest/gtest.h>

#include <string>

#include "imported.h"
#include "interop/import.h"

namespace placet {
namespace {

constexpr const char* kRun =
    "torchrun --nproc-per-node 8 --nnodes 1 pretrain_gpt.py --num-layers 8 --hidden-size 512 "
    "--num-attention-heads 8 --seq-length 128 --max-position-embeddings 128 --vocab-size 1000 "
    "--micro-batch-size 1 --global-batch-size 64 $ARGS\n";

Imported shell_read(const std::string& before, const std::string& run = kRun) {
  return import_sources(find_catalog(),
                        {.sources = {parse_source(before + run, SourceForm::arguments, "run.sh")},
                         .dialect = {},
                         .given = {}});
}

TEST(ShellScriptTest, OptionsAreAddedToAVariable) {
  const Imported result = shell_read(
      "ARGS=\"--bf16\"\nARGS+=\" --tensor-model-parallel-size 2\"\nN=1\nN+=6\n"
      "ARGS+=\" --max-position-embeddings $N\"\n");
  EXPECT_EQ(said_of(result, "placement"), "dp=4:ddp tp=2:tp");
  EXPECT_EQ(said_of(result, "precision"), "");
}

// "TEST && A || B" is A where the test holds, and B where it does not.
TEST(ShellScriptTest, WhatRunsWhereATestFails) {
  const std::string chosen = "[ $X = 1 ] && ARGS=\"--bf16\" || ARGS=\"--fp16\"\n";
  EXPECT_EQ(said_of(shell_read("X=1\n" + chosen), "precision"), "");
  EXPECT_EQ(said_of(shell_read("X=0\n" + chosen), "precision"), "mixed-fp16");
  EXPECT_EQ(said_of(shell_read("test 2 -gt 1 || ARGS=\"--fp16\"\nARGS=\"--bf16\"\n"), "precision"),
            "");
}

TEST(ShellScriptTest, AChoiceOnOneLine) {
  const std::string choice =
      "case $X in 7B) ARGS=\"--tensor-model-parallel-size 4\";; "
      "*) ARGS=\"--tensor-model-parallel-size 8\";; esac\n";
  EXPECT_EQ(said_of(shell_read("X=7B\n" + choice), "placement"), "dp=2:ddp tp=4:tp");
  EXPECT_EQ(said_of(shell_read("X=13B\n" + choice), "placement"), "tp=8:tp");
  EXPECT_TRUE(asks_for(shell_read("X=$1\n" + choice), "--set tp="));
}

TEST(ShellScriptTest, AGroupStandsBehindItsTest) {
  const std::string group = "{ ARGS=\"--fp16\"; B=\"--tensor-model-parallel-size 8\"; }";
  const Imported passed = shell_read("[[ a == b ]] && " + group + "\n");
  EXPECT_EQ(said_of(passed, "placement"), "dp=8:ddp");
  EXPECT_EQ(said_of(passed, "precision"), "fp32");
  const Imported other =
      shell_read("[[ a == b ]] && { ARGS=\"--fp16\"; } || { ARGS=\"--bf16\"; }\n");
  EXPECT_EQ(said_of(other, "precision"), "");
  EXPECT_EQ(said_of(shell_read("[[ a == a ]] && " + group + "\n"), "placement"), "tp=8:tp");
}

// An "if" of Python closes nothing and opens nothing.
TEST(ShellScriptTest, TextsForOtherProgramsAreNoCommands) {
  const Imported result = shell_read(
      "python3 - <<'PY'\nimport os\nif os.path.exists('x'):\n    print('--fp16')\nPY\n"
      "ARGS=\"--bf16\"\n");
  EXPECT_EQ(said_of(result, "precision"), "");
  EXPECT_EQ(said_of(result, "placement"), "dp=8:ddp");
}

// Written in branches, or more than once: nobody knows which of them is read.
TEST(ShellScriptTest, AFileWrittenInBranchesIsAskedFor) {
  const std::string run =
      "deepspeed --num_gpus 8 train.py --deepspeed ds.json --model_name_or_path "
      "meta-llama/Llama-3.1-8B --per_device_train_batch_size 1 --gradient_accumulation_steps 4\n";
  const auto stage = [](const char* number) {
    return "cat > ds.json <<EOF\n{\"zero_optimization\": {\"stage\": " + std::string(number) +
           "}, \"bf16\": {\"enabled\": true}, \"train_micro_batch_size_per_gpu\": 1,\n"
           "\"gradient_accumulation_steps\": 4}\nEOF\n";
  };
  EXPECT_EQ(said_of(shell_read(stage("3"), run), "placement"), "dp=8:zero3");
  EXPECT_TRUE(asks_for(shell_read(stage("1") + stage("2") + stage("3"), run), "'ds.json'"));
  EXPECT_TRUE(
      asks_for(shell_read("if [ $1 = a ]; then\n" + stage("3") + "fi\n", run), "'ds.json'"));
}

// What is said and not readable is not what holds where nothing is said.
TEST(ShellScriptTest, AValueThatNobodyReadsHasNoDefault) {
  EXPECT_FALSE(asks_for(shell_read(""), "ffn"));
  EXPECT_TRUE(asks_for(shell_read("ARGS=\"--ffn-hidden-size $1\"\n"), "ffn"));
  EXPECT_TRUE(asks_for(shell_read("if [ $1 = a ]; then\nARGS=\"--ffn-hidden-size 1024\"\nelse\n"
                                  "ARGS=\"--ffn-hidden-size 2048\"\nfi\n"),
                       "ffn"));
}

// The time and memory of hostile scripts are bounded.
TEST(ShellScriptTest, DeepAndOpenScriptsEnd) {
  std::string open;
  for (int i = 0; i < 100'000; ++i) open += "$(";
  EXPECT_EQ(said_of(shell_read("X=1" + open + "\n"), "placement"), "dp=8:ddp");
  std::string deep;
  for (int i = 0; i < 4'000; ++i) deep += "if [ $1 = x ]; then\nA=\"--bf16\"\n";
  EXPECT_FALSE(shell_read(deep).ledger.empty());
}

}  // namespace
}  // namespace placet
