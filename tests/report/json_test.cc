#include "report/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/bug.h"
#include "report/explanation.h"
#include "report/hand_made.h"
#include "report/trace.h"

namespace placet {
namespace {

using Json = nlohmann::json;

std::set<std::string> keys_of(const Json& json) {
  std::set<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.insert(key);
  return keys;
}

// Every key that is promised stands there; more may.
void expect_keys(const Json& json, const std::vector<std::string>& promised) {
  const std::set<std::string> keys = keys_of(json);
  for (const std::string& key : promised) EXPECT_TRUE(keys.contains(key)) << key;
}

TEST(DerivationJsonTest, HasThePromisedKeys) {
  const Json json = Json::parse(derivation_json(hand_made()));
  expect_keys(json, {"schema", "model", "devices", "placement", "engine", "mesh", "memory",
                     "communication", "findings"});
  EXPECT_EQ(json["schema"], "placet.derivation/1");
  expect_keys(json["model"], {"name", "parameters"});
  expect_keys(json["mesh"][0], {"axis", "degree", "shares", "cut", "modes", "classes", "link"});
  expect_keys(json["mesh"][0]["modes"], {"parameters", "optimizer", "gradients", "activations"});
  expect_keys(json["mesh"][1]["classes"]["experts"], {"cut", "modes"});
  const Json& memory = json["memory"];
  expect_keys(memory, {"fits", "capacity_bytes", "host_capacity_bytes", "peak_bytes", "classes"});
  expect_keys(memory["classes"][0],
              {"class", "devices", "at", "bytes", "rest_bytes", "host_bytes", "terms"});
  expect_keys(memory["classes"][0]["bytes"], {"parameters", "optimizer", "gradients", "activations",
                                              "transient", "overhead", "total"});
  expect_keys(memory["classes"][0]["terms"][0], {"state", "what", "axis_factors", "bytes"});
  expect_keys(json["communication"], {"sent_bytes", "classes"});
  expect_keys(json["communication"]["classes"][0], {"class", "sent_bytes", "terms"});
  expect_keys(json["communication"]["classes"][0]["terms"][0],
              {"axes", "collective", "op", "state", "what", "dtype", "phase", "payload_bytes",
               "count", "group", "sent_bytes", "levels"});
}

TEST(DerivationJsonTest, BytesAreWholeNumbersThatAddUp) {
  const Json json = Json::parse(derivation_json(hand_made()));
  for (const Json& memory : json["memory"]["classes"]) {
    std::int64_t sum = 0;
    for (const auto& [key, value] : memory["bytes"].items()) {
      EXPECT_TRUE(value.is_number_integer()) << key;
      if (key != "total") sum += value.get<std::int64_t>();
    }
    EXPECT_EQ(memory["bytes"]["total"], sum);
    std::int64_t terms = 0;
    for (const Json& term : memory["terms"]) terms += term["bytes"].get<std::int64_t>();
    EXPECT_EQ(terms, sum);
  }
  const Json& term = json["memory"]["classes"][0]["terms"][1];
  EXPECT_EQ(term["axis_factors"], Json::parse(R"([{"axis": "dp", "factor": "1/4"}])"));
  const Json& sent = json["communication"]["classes"][0]["terms"][0];
  EXPECT_EQ(sent["sent_bytes"], 12'000'000'000);
  EXPECT_EQ(sent["sent_exact"], "12000000000");
  EXPECT_EQ(sent["collective"], "reduce_scatter");
  EXPECT_EQ(sent["levels"], Json::parse(R"([{"link": "inside", "bytes": 12000000000}])"));
}

TEST(DerivationJsonTest, FindingsSpeakPlainly) {
  Judged judged = hand_made();
  judged.derivation.findings.push_back(
      {.rule = "r", .severity = Severity::warning, .where = "w", .message = "\xff", .cure = "c"});
  const Json json = Json::parse(derivation_json(judged));
  EXPECT_EQ(json["findings"][0]["severity"], "warning");
  expect_keys(json["findings"][0], {"rule", "severity", "where", "message", "cure"});
}

TEST(ComparisonJsonTest, RatiosAreToTheFirst) {
  std::vector<Judged> all = {hand_made(), hand_made()};
  all[1].derivation.sent = gigabytes(18);
  const Json json = Json::parse(comparison_json(all));
  EXPECT_EQ(json["schema"], "placet.comparison/1");
  EXPECT_EQ(json["derivations"].size(), 2U);
  EXPECT_EQ(json["ratios"][1]["sent"], 1.5);
  EXPECT_EQ(json["ratios"][1]["peak"], 1.0);
}

TEST(ModelJsonTest, HasThePromisedKeys) {
  const Json json = Json::parse(model_json(hand_made().job->model, 128));
  expect_keys(json, {"schema", "name", "family", "parameters", "layers", "tensors",
                     "flops_per_token", "notes"});
  EXPECT_EQ(json["schema"], "placet.model/1");
  expect_keys(json["parameters"], {"total", "active", "trainable"});
  EXPECT_EQ(json["parameters"]["total"], 1000);
  expect_keys(json["tensors"][0], {"name", "shape", "dtype", "class", "count"});
  EXPECT_EQ(json["tensors"][0]["dtype"], "bf16");  // what parameters rest in, unless said otherwise
  expect_keys(json["flops_per_token"], {"forward", "training"});
}

TEST(ModelJsonTest, TensorsHaveTheFormatOfTheirCheckpoint) {
  Model model = hand_made().job->model;
  model.stored = Dtype::fp32;
  EXPECT_EQ(Json::parse(model_json(model, 128))["tensors"][0]["dtype"], "fp32");
}

TEST(CatalogueJsonTest, ColumnsBecomeKeys) {
  const Catalogue list{.kind = "devices",
                       .columns = {"host", "memory"},
                       .rows = {{.name = "n",
                                 .title = "t",
                                 .cells = {"pcie", "1 KiB"},
                                 .figures = {std::nullopt, 1024},
                                 .sources = {"s"}}},
                       .hint = ""};
  const Json json = Json::parse(catalogue_json(list));
  EXPECT_EQ(json["entries"][0]["host"], "pcie");
  EXPECT_EQ(json["entries"][0]["memory"], 1024);  // the number behind the text
  EXPECT_EQ(json["entries"][0]["sources"][0], "s");
}

TEST(DerivationJsonTest, SaysWhatIsTrained) {
  EXPECT_FALSE(Json::parse(derivation_json(hand_made()))["training"].contains("trained"));
  Judged judged = hand_made();
  Job job = *judged.job;
  job.model.kinds[0].parameters[0].trainable = false;
  job.model.kinds[0].parameters.push_back(
      {.name = "a.lora_A.weight", .dims = {{.index = Index::hidden, .size = 10, .parts = 10}}});
  judged.job = std::make_shared<const Job>(job);
  const Json trained = Json::parse(derivation_json(judged))["training"]["trained"];
  EXPECT_EQ(trained["parameters"], 10);
  EXPECT_EQ(trained["total"], 1010);
  EXPECT_EQ(trained["share"], 10.0 / 1010);
  EXPECT_EQ(trained["modules"], Json({"a"}));
  EXPECT_EQ(trained["frozen_formats"], Json({{"bf16", 1000}}));
}

TEST(BugJsonTest, SaysWhatIsKnownOfTheBug) {
  BugStory story{.name = "n", .title = "t", .story = "s", .facts = {{"system", "NeMo"}}};
  story.call = "placet check job.toml";
  story.faults_mean = "gradients are not summed";
  const Json json = Json::parse(bug_json(story, std::nullopt));
  EXPECT_EQ(json.at("schema"), "placet.bug/1");
  EXPECT_EQ(json.at("system"), "NeMo");
  EXPECT_EQ(json.at("call"), "placet check job.toml");
  EXPECT_EQ(json.at("faults_mean"), "gradients are not summed");
  EXPECT_FALSE(json.contains("not_visible"));
  EXPECT_FALSE(json.contains("verdict"));
  const Json unseen = Json::parse(
      bug_json({.name = "n", .title = "t", .story = "s", .not_visible = "in a file"}, {}));
  EXPECT_EQ(unseen.at("not_visible"), "in a file");
  EXPECT_FALSE(unseen.contains("call"));
  EXPECT_FALSE(unseen.contains("faults_mean"));
}

TEST(ExplanationJsonTest, FactsHaveTheirSources) {
  const Explanation device{.kind = "device",
                           .word = "h",
                           .facts = {{"memory_gib", "80", "a page"}, {"host", "pcie", ""}}};
  const Json json = Json::parse(explanations_json("H", {device}));
  EXPECT_EQ(json.at("word"), "H");
  EXPECT_EQ(json.at("explanations").at(0).at("word"), "h");
  EXPECT_EQ(json.at("explanations").at(0).at("facts"),
            Json::parse(R"([{"key": "memory_gib", "value": "80", "source": "a page"},
                            {"key": "host", "value": "pcie", "source": ""}])"));
}

// Blocks are told apart by their number; there is one head.
TEST(TraceJsonTest, SlicesAreNamedAfterTheirUnits) {
  Judged judged = hand_made();
  Job job = *judged.job;
  job.model.kinds.push_back({.name = "head", .role = UnitRole::head});
  job.model.units = {{.kind = 0, .number = 12}, {.kind = 1}};
  judged.job = std::make_shared<const Job>(job);
  Simulation simulated;
  simulated.slices = {{.doing = Doing::forward, .unit = 0},
                      {.doing = Doing::backward, .unit = 1},
                      {.axes = axis_bit(1), .what = "gradients"}};
  std::vector<std::string> names;
  const Json trace = Json::parse(trace_json(judged, simulated));
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") names.push_back(event["name"]);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"forward of block 12", "backward of head",
                                             "gradients over dp"}));
}

}  // namespace
}  // namespace placet
