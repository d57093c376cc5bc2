// All subcommands judge a job by the same rules: what one calls an error, the others call so, in
// the same words, with the same cure and the same exit status.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cli/program_run.h"

namespace placet {
namespace {

using Json = nlohmann::json;

struct JudgedJob {
  std::string name;
  std::string rule;  // that is broken; empty: none
  std::string flags;
  bool fits = true;
  bool has_program = true;  // there is a step program form of it
};

const std::string kGpt2 = "gpt2 --seq 1024 --global-batch 16 --cluster h100-sxm:1 ";

std::vector<JudgedJob> jobs() {
  return {
      {"it fits", "", kGpt2 + "--placement dp=8:ddp"},
      {"a vocabulary cut unevenly", "", kGpt2 + "--placement \"dp=4:ddp tp=2:tp+sp\""},
      {"too large", "",
       "llama-3.1-70b --seq 1024 --global-batch 8 --cluster h100-sxm:1 --placement dp=8:ddp",
       false},
      {"heads", "divisibility", kGpt2 + "--placement tp=8:tp"},
      {"samples", "divisibility", kGpt2 + "--micro-batch 4 --placement dp=8:ddp", true, false},
      {"tokens", "divisibility",
       "gpt2 --seq 1024 --global-batch 16 --cluster 3xh100-sxm --placement cp=3:ring", true, false},
      {"devices", "product", kGpt2 + "--placement dp=4:ddp"},
      {"no meaning", "meaning", kGpt2 + "--placement \"dp=8:batch(S,S,S,R)\"", false},
      {"stages", "divisibility", kGpt2 + "--placement \"pp=8:interleaved(2)\"", true, false},
      {"schedule", "schedule",
       kGpt2 + "--placement \"pp=4:interleaved(3) dp=2:ddp\" --micro-batch 4", true, false},
      {"an engine that has no such thing", "engine",
       kGpt2 + "--engine pytorch-ddp --placement dp=8:zero1"},
      {"gradients used up in backward", "materialized-gradients",
       kGpt2 + "--placement \"dp=8:batch(R,R,M,R)\"", true, false},
      {"an optimizer that sees matrices", "whole-regions",
       kGpt2 + "--optimizer muon --placement dp=8:zero1", true, false},
  };
}

/// Rule, place, message and cure of the errors.
std::set<std::string> errors_in(const Json& findings) {
  std::set<std::string> out;
  for (const Json& finding : findings) {
    if (finding["severity"] != "error") continue;
    out.insert(finding["rule"].get<std::string>() + ", " + finding["where"].get<std::string>() +
               ": " + finding["message"].get<std::string>() +
               " (cure: " + finding["cure"].get<std::string>() + ")");
  }
  return out;
}

TEST(OneVoiceTest, SubcommandsFindTheSame) {
  for (const JudgedJob& job : jobs()) {
    const Result derived = run("derive " + job.flags + " --json");
    const std::set<std::string> errors = errors_in(Json::parse(derived.out)["findings"]);
    EXPECT_EQ(errors.empty(), job.rule.empty()) << job.name;
    for (const std::string& error : errors) EXPECT_TRUE(error.starts_with(job.rule)) << error;
    EXPECT_EQ(derived.status, job.rule.empty() && job.fits ? 0 : 1) << job.name;

    const Result simulated = run("simulate " + job.flags + " --json");
    EXPECT_EQ(errors_in(Json::parse(simulated.out)["findings"]), errors) << job.name;
    EXPECT_EQ(simulated.status, derived.status) << job.name;

    const Result compared = run("compare " + job.flags + " --json");
    EXPECT_EQ(errors_in(Json::parse(compared.out)["derivations"][0]["findings"]), errors)
        << job.name;
    const std::string text = run("compare " + job.flags + " --width 1000").out;
    for (const std::string& error : errors) EXPECT_TRUE(has(text, error)) << text;

    if (!job.has_program) continue;
    const Result checked = run("check " + job.flags + " --json");
    const Json verdict = Json::parse(checked.out);
    EXPECT_EQ(errors_in(verdict["rules"]), errors) << job.name;
    EXPECT_EQ(checked.status, verdict["equivalent"] ? 0 : 1) << job.name;
    EXPECT_EQ(verdict["equivalent"], job.rule != "meaning") << job.name;
    if (job.rule == "meaning") continue;
    for (const std::string& error : errors) EXPECT_TRUE(has(checked.err, error)) << checked.err;
  }
}

// 12 heads over 8, and 12 blocks over 16 virtual stages: plan names the rule as derive does.
TEST(OneVoiceTest, PlanNamesTheRuleThatLeavesNothing) {
  const std::string plan = "plan gpt2 --seq 1024 --global-batch 16 --cluster h100-sxm:1 --fix ";
  const Result heads = run(plan + "tp=8 --json");
  const Json json = Json::parse(heads.out);
  EXPECT_EQ(heads.status, 1);
  EXPECT_EQ(errors_in(json["shortage"]["findings"]),
            errors_in(Json::parse(
                run("derive " + kGpt2 + "--placement tp=8:tp --json").out)["findings"]));
  EXPECT_TRUE(has(run(plan + "tp=8 --width 1000").out,
                  "divisibility, axis tp: 12 heads do not divide by 8"));
  expect_wrong_input(plan + "\"pp=8:interleaved(2)\"", "12 blocks");
}

}  // namespace
}  // namespace placet
