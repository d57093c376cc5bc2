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

TEST(Call, PlansWithoutProofsAreTheSamePlans) {
  const auto plans = [](const std::string& more) {
    return Document::parse(answer(R"({"subcommand": "plan", "model": "gpt2", "top": 2, "seq": 256,
        "cluster": "2xh100-sxm", "global-batch": 8)" +
                                  more + "}")
                               .document)["plans"];
  };
  const Document proven = plans("");
  const Document open = plans(R"(, "proofs": false)");
  ASSERT_EQ(open.size(), 2U);
  EXPECT_EQ(proven[0]["proof"], "proven");
  EXPECT_EQ(open[0]["proof"], "not proven");
  EXPECT_EQ(open[0]["proof_reason"], "proofs were not asked for");
  for (std::size_t i = 0; i < open.size(); ++i) {
    EXPECT_EQ(open[i]["placement"], proven[i]["placement"]);
    EXPECT_EQ(open[i]["step_seconds"], proven[i]["step_seconds"]);
  }
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

// What the program says of a file, said of its text under the same name. The file is gone by then.
void expect_same_of_text(const std::string& name, const std::string& text,
                         const std::string& command, const std::string& flags,
                         const Document& words) {
  SCOPED_TRACE(command + " " + name);
  std::string file;
  Result printed;
  {
    const Folder folder;
    file = folder.write(name, text);
    printed = run(command + " " + file + " " + flags + " --json");
  }
  Document request = words;
  request["subcommand"] = command;
  request["sources"] = {{{"file", file}, {"text", text}}};
  const Answer called = answer(request.dump());
  EXPECT_EQ(called.status, printed.status) << called.document;
  EXPECT_EQ(called.document, printed.out);
  EXPECT_NE(printed.out, "") << printed.err;
}

constexpr const char* kToml =
    "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\n"
    "seq_len = 8192\n[parallelism]\ndata_parallel_shard_degree = -1\n"
    "tensor_parallel_degree = 3\n";
constexpr const char* kLaunch =
    "#!/bin/bash\nTP=8\ntorchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py \\\n"
    "  --tensor-model-parallel-size $TP --num-layers 32 --hidden-size 4096 \\\n"
    "  --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 \\\n"
    "  --micro-batch-size 1 --global-batch-size 64 --vocab-size 50304\n";
constexpr const char* kDeepSpeed =
    "{\n  \"train_batch_size\": 16,\n  \"gradient_clipp1ng\": 1.0,\n"
    "  \"zero_optimization\": {\"stage\": 3}\n}\n";
constexpr const char* kAccelerate =
    "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\nmixed_precision: bf16\n"
    "num_machines: 1\nnum_processes: 8\n";

TEST(Call, ReadsTextsAsTheProgramReadsFiles) {
  const Document world{{"world-size", 64}};
  const Document model{{"model", "gpt2"}, {"seq", 512}, {"world-size", "8"}};
  const std::string flags = "--model gpt2 --seq 512 --world-size 8";
  for (const std::string command : {"import", "lint"}) {
    expect_same_of_text("train.toml", kToml, command, "--world-size 64", world);
    expect_same_of_text("launch.sh", kLaunch, command, "", Document::object());
    expect_same_of_text("ds.json", kDeepSpeed, command, flags, model);
    expect_same_of_text("acc.yaml", kAccelerate, command, flags, model);
  }
}

TEST(Call, TextsWithoutAnEndingSayHowTheyAreWritten) {
  for (const auto& [text, dialect] : {std::pair(kToml, "torchtitan"),
                                      {kLaunch, "megatron"},
                                      {kDeepSpeed, "deepspeed"},
                                      {kAccelerate, "accelerate"}}) {
    const Document request{{"subcommand", "import"},
                           {"sources", {{"file", "pasted"}, {"text", text}}}};
    const auto document = Document::parse(answer(request.dump()).document);
    ASSERT_TRUE(document.contains("dialects")) << document.dump();
    EXPECT_TRUE(document["dialects"][0].get<std::string>().starts_with(dialect));
  }
}

TEST(Call, DerivesAndExportsFromTexts) {
  const Document request{{"subcommand", "derive"},
                         {"model", "gpt2"},
                         {"seq", 512},
                         {"world-size", 8},
                         {"from", {{{"file", "ds.json"}, {"text", kDeepSpeed}}}}};
  const auto derived = Document::parse(answer(request.dump()).document);
  EXPECT_EQ(derived["devices"], 8) << derived.dump(2).substr(0, 300);
  EXPECT_EQ(derived["training"]["global_batch"], 16);
  // Over the text itself: what is said otherwise is changed, a key that nobody knows stays.
  Document other = request;
  other["subcommand"] = "export";
  other["to"] = "deepspeed";
  other["global-batch"] = 32;
  const auto exported = Document::parse(answer(other.dump()).document);
  ASSERT_TRUE(exported.contains("files")) << exported.dump();
  const std::string text = exported["files"][0]["text"];
  EXPECT_TRUE(has(text, "\"train_batch_size\": 32,")) << text;
  EXPECT_TRUE(has(text, "\"gradient_clipp1ng\": 1.0,")) << text;
  expect_same(R"({"subcommand": "export", "model": "llama-3.1-8b", "cluster": "h100-sxm:1",
                  "placement": "dp=8:fsdp", "to": "torchtitan"})",
              "export llama-3.1-8b --cluster h100-sxm:1 --placement dp=8:fsdp --to torchtitan");
}

TEST(Call, MendsTextsAndWritesNothing) {
  const Folder folder;
  const std::string file = folder.write("ds.json", kDeepSpeed);
  const Document request{
      {"subcommand", "lint"}, {"fix", true}, {"sources", {{"file", file}, {"text", kDeepSpeed}}}};
  const auto document = Document::parse(answer(request.dump()).document);
  ASSERT_TRUE(document.contains("mended")) << document.dump();
  EXPECT_EQ(document["mended"][0]["file"], file);
  EXPECT_TRUE(has(document["mended"][0]["text"], "\"gradient_clipping\": 1.0"));
  EXPECT_EQ(read(file), kDeepSpeed);
}

TEST(Call, RefusesSourcesThatAreNone) {
  const auto problem_of = [](const std::string& sources) {
    const Answer wrong = answer(R"({"subcommand": "lint", "sources": )" + sources + "}");
    EXPECT_EQ(wrong.status, 2) << sources;
    return Document::parse(wrong.document)["error"]["message"].get<std::string>();
  };
  EXPECT_TRUE(has(problem_of(R"([{"file": "a.toml"}])"), "'text' is missing"));
  EXPECT_TRUE(has(problem_of(R"([{"file": "a.toml", "text": 7}])"), "is no text"));
  EXPECT_TRUE(has(problem_of(R"([{"file": "", "text": "a = 1"}])"), "file"));
  EXPECT_TRUE(has(problem_of(R"([{"file": "a.toml", "text": "[a", "name": "b"}])"), "name"));
  EXPECT_TRUE(has(problem_of(R"([{"file": "a", "text": "x"}, {"file": "a", "text": "y"}])"),
                  "is said twice"));
  EXPECT_TRUE(has(problem_of(R"([{"file": "a.toml", "text": "[a"}])"), "a.toml"));
  EXPECT_TRUE(has(problem_of("[]"), "SOURCES"));
  EXPECT_TRUE(has(problem_of(R"(["no-such.toml"])"), "no-such.toml"));
  EXPECT_TRUE(has(problem_of(R"("a.toml", "seq": "x")"), "--seq"));
}

}  // namespace
}  // namespace placet
