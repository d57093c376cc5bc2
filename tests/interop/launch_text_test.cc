// What is written for a shell, as a shell reads it: bash runs the text with `torchrun` a function
// that prints its words.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>

#include "interop/export.h"
#include "round_trip.h"
#include "units/error.h"

namespace placet {
namespace {

// The lines that bash prints for a script; a script that it cannot parse fails the test.
std::vector<std::string> printed_by_bash(const std::string& script) {
  std::string path = (std::filesystem::temp_directory_path() / "placet-launch-XXXXXX").string();
  const int file = mkstemp(path.data());
  EXPECT_GE(file, 0);
  std::ofstream(path) << "torchrun() { printf '%s\\n' \"$@\"; }\n" << script;
  EXPECT_EQ(std::system(("bash -n " + path).c_str()), 0) << script;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(("bash " + path).c_str(), "r"), pclose);
  std::string text;
  std::array<char, 4096> part{};
  while (const std::size_t size = fread(part.data(), 1, part.size(), pipe.get())) {
    text.append(part.data(), size);
  }
  std::filesystem::remove(path);
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// The words of a call behind an option, up to the next option.
std::vector<std::string> words_behind(const std::vector<std::string>& call,
                                      const std::string& option) {
  std::vector<std::string> words;
  auto at = std::ranges::find(call, option);
  if (at == call.end()) return {"no " + option};
  for (++at; at != call.end() && !at->starts_with("--"); ++at) words.push_back(*at);
  return words;
}

using LaunchWords = std::vector<std::string>;

std::string file_named(const Exported& exported, const std::string& name) {
  for (const ExportedFile& file : exported.files) {
    if (file.name == name) return file.text;
  }
  ADD_FAILURE() << "no file " << name;
  return "";
}

// A launch script of one call, with what stands behind its options.
Original original_of(const std::string& text) {
  Original origin;
  origin.text = text;
  origin.source = parse_source(text, SourceForm::arguments, "run.sh");
  const Imported said = import_sources(
      find_catalog(), {.sources = {origin.source}, .dialect = "megatron@2026", .given = {}});
  EXPECT_TRUE(said.missing.empty());
  origin.said = request_of_words(said.job, "run.sh");
  return origin;
}

const std::string kCall =
    "torchrun --nnodes 1 --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
    "--ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention "
    "--num-query-groups 8 --seq-length 4096 --max-position-embeddings 4096 --swiglu "
    "--normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights "
    "--vocab-size 128256 --position-embedding-type rope --bf16 --micro-batch-size 1 "
    "--global-batch-size 64 --tensor-model-parallel-size 2";

TEST(LaunchTextTest, AShellTakesEachValueAsItIs) {
  const Exported exported =
      export_job(find_catalog(), base_request("pp=4[9,8,7,8]:1f1b dp=2:zero1"), "megatron");
  ASSERT_TRUE(exported.unsaid.empty());
  const LaunchWords call = printed_by_bash(file_named(exported, "launch.sh"));
  EXPECT_EQ(words_behind(call, "--pipeline-model-parallel-layout"),
            LaunchWords{"Et*9|t*8|t*7|t*8L"});
  EXPECT_EQ(words_behind(call, "--num-layers"), LaunchWords{"32"});
}

TEST(LaunchTextTest, QuotedWordsOfAnotherScriptStayWords) {
  const Original origin =
      original_of(kCall +
                  " --data-path \"a b;c\" --split 9 'it is' 1 --blend 0.3 x 0.7 y "
                  "--title=\"it's\" --load /c\n");
  const Exported exported = export_over(find_catalog(), origin.said, origin, "megatron");
  const LaunchWords call = printed_by_bash(file_named(exported, "launch.sh"));
  EXPECT_EQ(words_behind(call, "--data-path"), LaunchWords{"a b;c"});
  EXPECT_EQ(words_behind(call, "--split"), (LaunchWords{"9", "it is", "1"}));
  EXPECT_EQ(words_behind(call, "--blend"), (LaunchWords{"0.3", "x", "0.7", "y"}));
  EXPECT_EQ(words_behind(call, "--title"), LaunchWords{"it's"});
  EXPECT_EQ(words_behind(call, "--load"), LaunchWords{"/c"});
}

// The text of a script that was changed, without what launches it.
std::string changed_script(const std::string& text,
                           const std::function<void(JobRequest&)>& change) {
  const Original origin = original_of(text);
  JobRequest meant = origin.said;
  change(meant);
  const Exported exported = export_over(find_catalog(), meant, origin, "megatron");
  EXPECT_TRUE(exported.unsaid.empty());
  return exported.files.front().text;
}

void recompute_all(JobRequest& job) { job.recompute = "full"; }

// The launcher's own words stay before the program's name, the new ones come behind it.
void expect_recomputed(const std::string& script) {
  const LaunchWords call = printed_by_bash(script);
  ASSERT_GT(call.size(), 4U) << script;
  EXPECT_EQ(LaunchWords(call.begin(), call.begin() + 5),
            (LaunchWords{"--nnodes", "1", "--nproc-per-node", "8", "pretrain_gpt.py"}));
  EXPECT_EQ(words_behind(call, "--recompute-granularity"), LaunchWords{"full"}) << script;
  EXPECT_EQ(words_behind(call, "--tensor-model-parallel-size"), LaunchWords{"2"}) << script;
}

TEST(LaunchTextTest, ANewOptionIsOneOfTheCallOfOneLine) {
  expect_recomputed(changed_script(kCall + "\n", recompute_all));
}

TEST(LaunchTextTest, WhatStandsBelowTheCallIsNoPlaceForAnOption) {
  expect_recomputed(changed_script("SEED=1\n" + kCall + "\nDONE=1\n", recompute_all));
}

TEST(LaunchTextTest, OptionsOfACallOverSeveralLinesStayInIt) {
  const std::string call = kCall.substr(0, kCall.find(" --seq-length"));
  const std::string rest = kCall.substr(call.size() + 1);
  expect_recomputed(
      changed_script(call + " \\\n  " + rest + " \\\n  --seed 3\nDONE=1\n", recompute_all));
}

TEST(LaunchTextTest, OptionsOfAVariableStayInItsQuotes) {
  const std::size_t begin = kCall.find("--num-layers");
  expect_recomputed(changed_script(
      "ARGS=\"" + kCall.substr(begin) + "\"\n" + kCall.substr(0, begin) + "$ARGS\nDONE=1\n",
      recompute_all));
}

// The last option of a call that goes on over lines is taken out; the next command stays one.
TEST(LaunchTextTest, AnOptionThatGoesLeavesTheCallWhole) {
  const LaunchWords call = printed_by_bash(
      changed_script(kCall + " --recompute-method uniform \\\n  --recompute-num-layers 1 "
                             "\\\n--recompute-granularity full\nDONE=1\n",
                     [](JobRequest& job) { job.recompute = "none"; }));
  EXPECT_EQ(words_behind(call, "--recompute-granularity").front(), "no --recompute-granularity");
  EXPECT_EQ(std::ranges::count(call, "DONE=1"), 0);
}

// Quotes inside of quotes would end these.
TEST(LaunchTextTest, AValueThatNeedsQuotesIsNotPutIntoOthers) {
  const std::size_t begin = kCall.find("--num-layers");
  const std::string script = "ARGS=\"" + kCall.substr(begin) +
                             " --pipeline-model-parallel-size 4\"\n" + kCall.substr(0, begin) +
                             "$ARGS\n";
  try {
    changed_script(script, [](JobRequest& job) { job.placement = "pp=4[9,8,7,8]:1f1b tp=2:tp"; });
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("cannot be changed in place"), std::string::npos)
        << error.what();
  }
}

TEST(LaunchTextTest, AValueThatOnlyAShellKnowsIsReplacedByTheJobs) {
  std::string script = kCall + "\n";
  const std::string batch = "--global-batch-size 64";
  script.replace(script.find(batch), batch.size(), "--global-batch-size $((NODES * 16))");
  Original origin;
  origin.text = script;
  origin.source = parse_source(script, SourceForm::arguments, "run.sh");
  origin.given = {{"global-batch", "128"}};
  const Imported said = import_sources(
      find_catalog(),
      {.sources = {origin.source}, .dialect = "megatron@2026", .given = origin.given});
  origin.said = request_of_words(said.job, "run.sh");
  const Exported exported = export_over(find_catalog(), origin.said, origin, "megatron");
  EXPECT_EQ(words_behind(printed_by_bash(file_named(exported, "launch.sh")), "--global-batch-size"),
            LaunchWords{"128"});
}

TEST(LaunchTextTest, VariablesOfTheEnvironmentStayVariables) {
  const Original origin =
      original_of(kCall + " --data-path \"$DATA_FOLDER/a;b\" --split ${SHARES} --save /x\n");
  const Exported exported = export_over(find_catalog(), origin.said, origin, "megatron");
  const std::string launch = file_named(exported, "launch.sh");
  const LaunchWords call =
      printed_by_bash("export DATA_FOLDER='/two words' SHARES='9 1'\n" + launch);
  EXPECT_EQ(words_behind(call, "--data-path"), LaunchWords{"/two words/a;b"});
  EXPECT_EQ(words_behind(call, "--split"), (LaunchWords{"9", "1"}));
  EXPECT_EQ(words_behind(call, "--save"), LaunchWords{"/x"});
  EXPECT_EQ(printed_by_bash("exec 2>/dev/null\n" + launch), LaunchWords{});
}

TEST(LaunchTextTest, AValueThatOnlyTheScriptKnowsIsRefusedWithItsLine) {
  for (const std::string value : {"$1", "$(id)", "${#RUN}", "$RUN/x", "`id`"}) {
    const Original origin = original_of("RUN=$2\n" + kCall + " --data-path " + value + "\n");
    try {
      export_over(find_catalog(), origin.said, origin, "megatron");
      ADD_FAILURE() << "accepted " << value;
    } catch (const InputError& error) {
      const std::string said = value == "$RUN/x" ? "$2/x" : value == "`id`" ? "$(id)" : value;
      EXPECT_EQ(error.what(), "run.sh:2: does not say the value of '--data-path': it is '" + said +
                                  "'; expected a value, or variables by their names");
    }
  }
}

}  // namespace
}  // namespace placet
