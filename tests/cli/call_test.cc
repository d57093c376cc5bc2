// The one entry for all faces gives the documents that the program prints with --json.
#include "call/call.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <utility>

#include "catalog/memory.h"
#include "cli/program_run.h"

namespace placet {
namespace {

using Document = nlohmann::ordered_json;

Answer answer(const std::string& request) { return call(find_catalog(), request); }

/// What the program itself took is no part of an answer.
std::string without_seconds(const std::string& text) {
  static const std::regex kSeconds(R"(  "seconds": \{[^}]*\})");
  return std::regex_replace(text, kSeconds, "");
}

void expect_same(const std::string& request, const std::string& arguments) {
  SCOPED_TRACE(request);
  const Answer called = answer(request);
  const Result printed = run(arguments + " --json");
  EXPECT_EQ(called.status, printed.status) << called.document;
  EXPECT_EQ(without_seconds(called.document), without_seconds(printed.out));
  ASSERT_FALSE(printed.out.empty());
}

TEST(Call, GivesTheDocumentsOfTheProgram) {
  expect_same(R"({"subcommand": "derive", "model": "gpt2", "placement": "dp=8:zero3", "seq": 512,
                  "cluster": "h100-sxm:1", "global-batch": "64"})",
              "derive gpt2 --placement dp=8:zero3 --seq 512 --cluster h100-sxm:1 "
              "--global-batch 64");
  expect_same(R"({"subcommand": "derive", "model": "llama-3.1-70b", "placement": "dp=8:ddp",
                  "cluster": "h100-sxm:1"})",
              "derive llama-3.1-70b --placement dp=8:ddp --cluster h100-sxm:1");
  expect_same(R"({"subcommand": "model", "model": "gpt2", "lora": 8})", "model gpt2 --lora 8");
  expect_same(R"({"subcommand": "compare", "model": "gpt2", "placement": ["dp=4:ddp", "tp=4:tp"]})",
              "compare gpt2 --placement dp=4:ddp --placement tp=4:tp");
  expect_same(R"({"subcommand": "schedules", "name": "1f1b"})", "schedules 1f1b");
}

TEST(Call, GivesTimesAndPlansOfTheProgram) {
  expect_same(R"({"subcommand": "simulate", "model": "gpt2", "placement": "pp=2:1f1b dp=2:ddp",
                  "cluster": "4xh100-sxm", "global-batch": 8, "straggler": ["0=1.5"]})",
              "simulate gpt2 --placement \"pp=2:1f1b dp=2:ddp\" --cluster 4xh100-sxm "
              "--global-batch 8 --straggler 0=1.5");
  expect_same(R"({"subcommand": "plan", "model": "gpt2", "cluster": "2xh100-sxm", "seq": 256,
                  "global-batch": 8, "top": 2, "max-memory": 0.5, "scale": [4], "front": 2})",
              "plan gpt2 --cluster 2xh100-sxm --seq 256 --global-batch 8 --top 2 "
              "--max-memory 0.5 --scale 4 --front 2");
}

TEST(Call, GivesTheSlicesOfASimulatedStep) {
  const Answer given = answer(R"({"subcommand": "simulate", "model": "gpt2", "slices": true,
      "placement": "pp=2:1f1b dp=2:ddp", "cluster": "4xh100-sxm", "global-batch": 8})");
  ASSERT_EQ(given.status, 0) << given.document;
  const auto document = Document::parse(given.document);
  EXPECT_EQ(document["schema"], "placet.slices/1");
  EXPECT_EQ(document["stages"], 2);
  const Document& slices = document["slices"];
  std::set<std::pair<int, int>> forwards;  // stage and micro-batch
  for (std::size_t i = 0; i < slices["begin"].size(); ++i) {
    EXPECT_LE(slices["begin"][i], slices["end"][i]);
    EXPECT_LE(slices["end"][i], document["step_nanoseconds"]);
    if (document["doings"][slices["doing"][i].get<std::size_t>()] == "forward") {
      forwards.emplace(slices["stage"][i], slices["micro_batch"][i]);
    }
  }
  // 8 samples, one at a time on two pipelines: 4 micro-batches pass each of two stages.
  EXPECT_EQ(forwards.size(), 8U);
}

TEST(Call, GivesProgramsAndVerdictsOfTheProgram) {
  expect_same(R"({"subcommand": "lower", "model": "gpt2", "placement": "dp=2:ddp"})",
              "lower gpt2 --placement dp=2:ddp");
  expect_same(R"({"subcommand": "check", "model": "gpt2", "placement": "dp=2:ddp"})",
              "check gpt2 --placement dp=2:ddp");
  const std::string fault = "rescale(all_reduce, phase=reduce, by=1/dp)";
  expect_same(R"({"subcommand": "check", "model": "gpt2", "placement": "dp=2:ddp", "fault": ")" +
                  fault + R"(", "list-faults": true})",
              "check gpt2 --placement dp=2:ddp --list-faults --fault \"" + fault + '"');
  expect_same(R"({"subcommand": "verify", "model": "gpt2", "placement": "dp=2:ddp", "seeds": 1})",
              "verify gpt2 --placement dp=2:ddp --seeds 1");
  expect_same(R"({"subcommand": "run", "model": "gpt2", "placement": "dp=2:ddp", "steps": 1})",
              "run gpt2 --placement dp=2:ddp --steps 1");
}

TEST(Call, TakesAModelAsItsConfiguration) {
  const std::string config =
      R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,)"
      R"( "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100})";
  const Folder folder;
  const std::string file = folder.write("config.json", config);
  const auto given =
      Document::parse(answer(R"({"subcommand": "model", "model": )" + config + "}").document);
  const auto read =
      Document::parse(answer(R"({"subcommand": "model", "model": ")" + file + "\"}").document);
  ASSERT_TRUE(given.contains("parameters")) << given.dump();
  EXPECT_EQ(given["parameters"], read["parameters"]);
}

TEST(Call, GivesTheSameFromMemory) {
  const std::string request =
      R"({"subcommand": "derive", "model": "gpt2", "placement": "dp=8:zero3", "engine": "pytorch",
          "cluster": "h100-sxm:1"})";
  Catalog catalog = find_catalog();
  const std::string without = call(catalog, request).document;
  catalog.memory = std::make_shared<CatalogMemory>();
  EXPECT_EQ(call(catalog, request).document, without);
  EXPECT_EQ(call(catalog, request).document, without);
}

TEST(Call, AnswersWrongInputWithItsParts) {
  const Answer wrong = answer(R"({"subcommand": "derive", "model": "gtp2", "placement": "dp=8"})");
  EXPECT_EQ(wrong.status, 2);
  const auto error = Document::parse(wrong.document)["error"];
  EXPECT_EQ(error["where"], "MODEL");
  EXPECT_EQ(error["value"], "gtp2");
  EXPECT_EQ(error["nearest"], "gpt2");
}

TEST(Call, RefusesWhatIsNoRequest) {
  const auto problem_of = [](const std::string& request) {
    const Answer wrong = answer(request);
    EXPECT_EQ(wrong.status, 2) << request;
    return Document::parse(wrong.document)["error"]["message"].get<std::string>();
  };
  EXPECT_TRUE(has(problem_of("["), "request"));
  EXPECT_TRUE(has(problem_of("[]"), "not an object"));
  EXPECT_TRUE(has(problem_of("{}"), "'subcommand' is missing"));
  EXPECT_TRUE(has(problem_of(R"({"subcommand": "deriv"})"), "did you mean 'derive'"));
  EXPECT_TRUE(has(problem_of(R"({"subcommand": "derive", "sequ": 4})"), "did you mean 'seq'"));
  EXPECT_TRUE(has(problem_of(R"({"subcommand": "derive", "seq": true})"), "no word"));
  EXPECT_TRUE(has(problem_of(R"({"subcommand": "derive", "model": "gpt2", "seq": -1})"), "--seq"));
  EXPECT_TRUE(has(problem_of(R"({"subcommand": "plan", "top": 0})"), "request: top"));
  EXPECT_TRUE(has(problem_of(R"({"subcommand": "check", "accept": "all"})"), "aux-scope"));
}

}  // namespace
}  // namespace placet
