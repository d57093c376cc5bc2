// What people write in public questions: each phrase works, or is answered with the right spelling.
// The phrases are data (phrases.json): "works" holds texts of a result with status 0 or 1,
// "answers" texts of a message with status 2.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/program_run.h"

namespace placet {
namespace {

using Json = nlohmann::json;

Json phrases() { return Json::parse(read(PLACET_SOURCE_DIR "/tests/cli/phrases.json")); }

void expect_works(const Json& phrase, const Result& result) {
  EXPECT_LE(result.status, 1) << result.err;
  EXPECT_GE(result.status, 0);
  EXPECT_EQ(result.err, "");
  for (const Json& text : phrase["works"]) {
    EXPECT_TRUE(has(result.out, text.get<std::string>())) << text << "\n" << result.out;
  }
}

void expect_answered(const Json& phrase, const Result& result) {
  EXPECT_EQ(result.status, 2) << result.out;
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("placet: ")) << result.err;
  for (const Json& text : phrase["answers"]) {
    EXPECT_TRUE(has(result.err, text.get<std::string>())) << text << "\n" << result.err;
  }
}

TEST(PhrasesTest, EachWorksOrIsAnsweredWithTheRightSpelling) {
  for (const Json& phrase : phrases()) {
    SCOPED_TRACE(phrase["said"].get<std::string>());
    // Notes are long lines: a wide page breaks none of the texts looked for.
    const Result result =
        run(phrase["arguments"].get<std::string>() + " --width 1000", "COLUMNS=1000");
    if (phrase.contains("works")) {
      expect_works(phrase, result);
    } else {
      expect_answered(phrase, result);
    }
  }
}

// The names of findings, as the sources of the derivation write them.
TEST(ExplainTest, EveryRuleHasAnEntry) {
  std::set<std::string> rules;
  const std::string mark = ".rule = \"";
  for (const auto& file : std::filesystem::recursive_directory_iterator(PLACET_SOURCE_DIR "/src")) {
    if (file.path().extension() != ".cc") continue;
    const std::string text = read(file.path());
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
      const std::size_t begin = at + mark.size();
      rules.insert(text.substr(begin, text.find('"', begin) - begin));
    }
  }
  EXPECT_GE(rules.size(), 20U);
  for (const std::string& rule : rules) {
    const Result result = run("explain " + rule);
    EXPECT_EQ(result.status, 0) << rule << ": " << result.err;
    EXPECT_TRUE(has(result.out, rule + "  (rule")) << result.out;
  }
}

// Words of the field that name no file and no flag.
TEST(ExplainTest, TermsOfTheFieldHaveEntries) {
  for (const char* word :
       {"lora", "nvlink", "pcie", "infiniband", "selective", "capacity", "moe", "rope", "swiglu",
        "flash-attention", "nccl", "'gradient accumulation'", "'activation checkpointing'", "mesh",
        "micro-batch", "recipe", "mxfp8", "PL012"}) {
    EXPECT_EQ(run(std::string("explain ") + word).status, 0) << word;
  }
}

TEST(PhrasesTest, AreFortyFive) { EXPECT_GE(phrases().size(), 45U); }

}  // namespace
// Releases come more often than what is known of them changes.
TEST(PhrasesTest, AReleaseOfAnEngineWithoutAFileIsThatBeforeIt) {
  for (const char* call : {"engines deepspeed@0.18.9", "explain deepspeed@0.18.9"}) {
    const Result result = run(call);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_TRUE(has(result.out + result.err, "'deepspeed@0.18.9' is taken as deepspeed@0.14"))
        << result.out << result.err;
  }
}

}  // namespace placet
