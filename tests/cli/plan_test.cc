// placet plan from outside: what it lists, what explains that, what it refuses, its page.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cli/program_run.h"

namespace placet {
namespace {

using Json = nlohmann::json;

const std::string kSmallPlan =
    "plan llama-3.2-1b --cluster h100-sxm:1 --seq 2048 --global-batch 32 ";

std::string job_words(const Json& job) {
  std::string text = job["model"].get<std::string>();
  for (const char* word : {"cluster", "recompute", "engine", "optimizer", "placement"}) {
    text += std::string(" --") + word + " '" + job[word].get<std::string>() + "'";
  }
  for (const char* word : {"seq", "global-batch", "micro-batch"}) {
    text += std::string(" --") + word + " " + std::to_string(job[word].get<int>());
  }
  return text;
}

TEST(PlanTest, PlansSayWhatDeriveAndSimulateSay) {
  const Result result = run(kSmallPlan + "--top 4 --json");
  ASSERT_EQ(result.status, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["schema"], "placet.plans/1");
  EXPECT_TRUE(json["exact"]);
  EXPECT_EQ(json["visited"].get<int>() + json["bounded"].get<int>(), json["space"].get<int>());
  ASSERT_EQ(json["plans"].size(), 4U);
  double before = 0;
  for (const Json& plan : json["plans"]) {
    EXPECT_LE(before, plan["step_seconds"].get<double>());
    before = plan["step_seconds"].get<double>();
    const std::string job = job_words(plan["job"]) + " --json";
    const Json time = Json::parse(run("simulate " + job).out);
    EXPECT_EQ(time["step_seconds"], plan["step_seconds"]) << job;
    EXPECT_EQ(time["peak_bytes"], plan["peak_bytes"]) << job;
    EXPECT_EQ(time["mfu"], plan["mfu"]) << job;
    const Result derived = run("derive " + job);
    EXPECT_EQ(derived.status, 0) << job;
    EXPECT_EQ(Json::parse(derived.out)["communication"]["sent_bytes"], plan["sent_bytes"]) << job;
  }
  EXPECT_FALSE(json["plans"][0]["neighbours"].empty());
  EXPECT_TRUE(json["marginal"].contains("memory"));
}

TEST(PlanTest, KeepsToWhatIsAskedFor) {
  const Json json = Json::parse(
      run(kSmallPlan + "--fix tp=2:tp --require no-zero1 --max-memory 0.5 --micro-batch 2 --json")
          .out);
  ASSERT_FALSE(json["plans"].empty());
  for (const Json& plan : json["plans"]) {
    EXPECT_TRUE(has(plan["placement"], "tp=2:tp")) << plan["placement"];
    EXPECT_FALSE(has(plan["placement"], "zero1")) << plan["placement"];
    EXPECT_EQ(plan["micro_batch"], 2);
    EXPECT_LT(plan["peak_bytes"].get<double>(), 0.5 * 85e9);
  }
}

TEST(PlanTest, ItsJobIsTheOneThatWasPlanned) {
  const Json plan =
      Json::parse(run(kSmallPlan + "--lora 16 --precision bf16 --top 1 --json").out)["plans"][0];
  const Folder folder;
  const Result timed = run("simulate --json --job " + folder.write("job.json", plan["job"].dump()));
  EXPECT_EQ(timed.status, 0) << timed.err;
  EXPECT_EQ(Json::parse(timed.out)["step_seconds"], plan["step_seconds"]);
  EXPECT_EQ(Json::parse(timed.out)["peak_bytes"], plan["peak_bytes"]);
}

TEST(PlanTest, WithoutAnyWordOfARoleThereIsNoSuchAxis) {
  const Json json = Json::parse(run(kSmallPlan + "--require no-tp --top 3 --json").out);
  EXPECT_EQ(json["plans"].size(), 3);
  for (const Json& plan : json["plans"]) EXPECT_FALSE(has(plan["placement"], "tp="));
}

TEST(PlanTest, FixedTermsAreReadInAnySpelling) {
  const auto best = [](const std::string& fix) {
    const Json json = Json::parse(run(kSmallPlan + "--top 1 --json --fix '" + fix + "'").out);
    return json["plans"][0]["placement"].get<std::string>();
  };
  EXPECT_EQ(best("dp=4:batch(R,S,R,R) tp=2:sp+tp"), best("dp=4:zero1 tp=2:tp+sp"));
  EXPECT_EQ(best("tp=2:tensor(S,S,S,S*),dp=4"), best("dp=4 tp=2:tp+sp"));
}

// 300e9 tokens in steps of 32 x 2048: ceil(300e9 / 65,536) = 4,577,637 steps; 8 devices at 2
// dollars an hour cost 16 / 3600 dollars a second.
// Words that --placement takes for an axis or a strategy, and the axis that plans have for them.
TEST(PlanTest, FixedAxesAreReadAsPeopleNameThem) {
  for (const auto& [written, meant] :
       std::map<std::string, std::string>{{"TP=2", "tp=2"},
                                          {"tp2", "tp=2"},
                                          {"tensor=2", "tp=2"},
                                          {"data=2,tp=4", "dp=2 tp=4"},
                                          {"fsdp=8", "dp=8:fsdp"},
                                          {"zero-stage-1=8", "dp=8:zero1"},
                                          {"ulysses=2", "cp=2:ulysses"}}) {
    const std::string call = kSmallPlan + "--top 1 --json --fix '";
    const Result as_written = run(call + written + "'");
    ASSERT_EQ(as_written.status, 0) << written << ": " << as_written.err;
    const Json got = Json::parse(as_written.out);
    EXPECT_EQ(got["plans"], Json::parse(run(call + meant + "'").out)["plans"]) << written;
    EXPECT_TRUE(has(got["notes"].dump(), "'" + written + "' is taken as " + meant)) << got["notes"];
  }
  EXPECT_FALSE(has(run(kSmallPlan + "--top 1 --fix tp=2,dp=4").out, "is taken as tp=2"));
}

TEST(PlanTest, PricesATraining) {
  const Json json =
      Json::parse(run(kSmallPlan + "--top 1 --tokens 300B --price h100-sxm=2 --json").out);
  const Json& training = json["training"];
  const double step = json["plans"][0]["step_seconds"];
  EXPECT_EQ(training["steps"], 4'577'637);
  EXPECT_NEAR(training["days"].get<double>(), 4'577'637 * step / 86'400, 1e-6);
  EXPECT_NEAR(json["plans"][0]["cost"].get<double>(), step * 16 / 3600, 1e-9);
  EXPECT_NEAR(training["cost"].get<double>(), 4'577'637 * step * 16 / 3600, 1e-3);
  EXPECT_NEAR(training["device_hours"].get<double>() * 2, training["cost"].get<double>(), 1e-3);
}

// In steps of any size more plans are on the front: memory falls and time rises from each to the
// next.
TEST(PlanTest, TheFrontMayHaveEveryPlanThatNoneBeats) {
  const Json front = Json::parse(run(kSmallPlan + "--front 4 --front-step 0 --json").out)["front"];
  EXPECT_EQ(front["step"], 0);
  const Json& plans = front["plans"];
  ASSERT_EQ(plans.size(), 4U);
  for (std::size_t i = 1; i < plans.size(); ++i) {
    EXPECT_LT(plans[i]["peak_bytes"], plans[i - 1]["peak_bytes"]);
    EXPECT_GE(plans[i]["step_seconds"], plans[i - 1]["step_seconds"]);
  }
  expect_wrong_input(kSmallPlan + "--front-step 0", "--front");
}

// Along the front memory falls by a fiftieth or more and time rises, and nothing that the whole
// search found is as small as a plan of the front and faster.
TEST(PlanTest, TheFrontTradesTimeForMemory) {
  const Json json = Json::parse(run(kSmallPlan + "--front 4 --json").out);
  const Json& front = json["front"]["plans"];
  ASSERT_GE(front.size(), 2U);
  EXPECT_EQ(front[0]["placement"], json["plans"][0]["placement"]);
  for (std::size_t i = 1; i < front.size(); ++i) {
    EXPECT_LE(front[i]["peak_bytes"].get<double>(),
              0.98 * front[i - 1]["peak_bytes"].get<double>());
    EXPECT_GE(front[i]["step_seconds"], front[i - 1]["step_seconds"]);
    const double part = front[i]["peak_bytes"].get<double>() / 84.9e9 + 1e-3;
    const Json under =
        Json::parse(run(kSmallPlan + "--top 1 --json --max-memory " + std::to_string(part)).out);
    EXPECT_LE(under["plans"][0]["step_seconds"], front[i]["step_seconds"]);
  }
}

TEST(PlanTest, ScalesOverNumbersOfDevices) {
  const Json json = Json::parse(run(kSmallPlan + "--top 1 --scale 16,8 --json").out);
  ASSERT_EQ(json["scale"].size(), 2U);
  EXPECT_EQ(json["scale"][0]["devices"], 8);
  EXPECT_EQ(json["scale"][0]["plan"]["step_seconds"], json["plans"][0]["step_seconds"]);
  EXPECT_LT(json["scale"][1]["plan"]["step_seconds"], json["plans"][0]["step_seconds"]);
}

TEST(PlanTest, SaysWhatStandsAgainstAnyPlan) {
  const Result result = run(
      "plan llama-3.1-70b --cluster 2xh100-sxm --seq 2048 --global-batch 8 --require no-offload");
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_TRUE(has(result.out, "no plan"));
  EXPECT_TRUE(has(result.out, "its largest part: optimizer"));
  EXPECT_TRUE(has(result.out, "such devices would do"));
}

// 32 heads and 8 groups of keys cannot be cut in 64. The keys are those of any shortage.
TEST(PlanTest, SaysThatRulesExcludeAllPlans) {
  const std::string call = "plan llama-3.1-8b --cluster h100-sxm:8 --global-batch 64 --fix tp=64";
  EXPECT_TRUE(has(run(call).out, "no placement keeps the rules and the constraints"));
  const Json json = Json::parse(run(call + " --json").out);
  EXPECT_EQ(json["shortage"]["lacks"], "rules");
  EXPECT_GT(json["rejected"]["divisibility"], 0);
  const Json other = Json::parse(run(kSmallPlan + "--max-memory 0.001 --json").out);
  for (const auto& [key, value] : other["shortage"].items()) {
    EXPECT_TRUE(json["shortage"].contains(key)) << key;
  }
  EXPECT_TRUE(json["shortage"]["placement"].is_null());
  EXPECT_TRUE(json["shortage"]["peak_bytes"].is_null());
}

// A step of one micro-batch: what is kept for it is kept for the step. Of the words that say the
// one and the other there is one plan, with each offload.
TEST(PlanTest, ListsWhatIsKeptForTheOnlyMicroBatchOnce) {
  const Json json = Json::parse(run(kSmallPlan + "--fix dp=8 --micro-batch 4 --top 20 --json").out);
  std::map<std::string, int> seen;
  for (const Json& plan : json["plans"]) {
    std::string placement = plan["placement"];
    const std::size_t step = placement.find("keep-step");
    if (step != std::string::npos) placement.replace(step, 9, "keep");
    ++seen[placement];
  }
  EXPECT_EQ(seen["dp=8:zero3+keep"], 1);
  for (const auto& [placement, count] : seen) EXPECT_EQ(count, 1) << placement;
}

// More memory brings nothing where the least memory is sought, and no neighbour needs less.
TEST(PlanTest, ExplainsThePlanOfLeastMemoryByMemory) {
  const Json json = Json::parse(run(kSmallPlan + "--goal memory --top 1 --json").out);
  EXPECT_FALSE(json["marginal"].contains("memory"));
  EXPECT_TRUE(json["marginal"].contains("arithmetic"));
  const Json& plan = json["plans"][0];
  std::size_t judged = 0;
  for (const Json& other : plan["neighbours"]) {
    if (!other.contains("peak_bytes")) continue;
    ++judged;
    EXPECT_GE(other["peak_bytes"], plan["peak_bytes"]) << other;
  }
  EXPECT_GT(judged, 0U);
}

// The device has 85 GB and the plan takes less: what forbids it is the flag.
TEST(PlanTest, NamesTheFlagThatLeavesNoPlan) {
  const Result result = run(kSmallPlan + "--max-memory 0.001");
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_TRUE(has(result.out, "the device has room for it; --max-memory 0.001 allows"));
  const Json json = Json::parse(run(kSmallPlan + "--max-memory 0.001 --json").out);
  EXPECT_EQ(json["shortage"]["lacks"], "max_memory");
}

TEST(PlanTest, WrongInput) {
  expect_wrong_input("plan gpt2 --global-batch 8", "--cluster: is missing");
  expect_wrong_input(kSmallPlan + "--placement dp=8:ddp", "is what a plan is to find");
  expect_wrong_input(kSmallPlan + "--fix tq=2", "did you mean 'tp'?");
  expect_wrong_input(kSmallPlan + "--fix tp=two", "has no degree");
  expect_wrong_input(kSmallPlan + "--fix tp=2:tp+sq", "did you mean 'tp+sp'?");
  expect_wrong_input(kSmallPlan + "--require zero7", "did you mean 'zero");
  expect_wrong_input(kSmallPlan + "--max-memory 1.5", "is no part of a device's memory");
  expect_wrong_input(kSmallPlan + "--goal speed", "--goal");
  expect_wrong_input(kSmallPlan + "--goal tme", "did you mean 'time'?");
  expect_wrong_input(kSmallPlan + "--max-memory 1,5", "--max-memory: '1,5' is not valid");
  expect_wrong_input("plan gpt4 --cluster a100-80gb-sxm:1", "is not a known model");
  expect_wrong_input("plan gpt2 --cluster a100-80gb-sxm:1 --global-batch 8 --goal cost",
                     "needs a price, and a100-80gb-sxm has none; expected --price");
  expect_wrong_input(kSmallPlan + "--fix tp=3",
                     "'tp=3' does not divide the 8 devices; expected 1, 2, 4 or 8");
  expect_wrong_input(kSmallPlan + "--fix 'tp=4 pp=4'", "takes 16 devices");
  expect_wrong_input("plan gpt2 --cluster h100-sxm:2 --global-batch 8 --fix dp=16",
                     "cannot share the 8 samples");
  expect_wrong_input("plan gpt2 --cluster h100-sxm:2 --global-batch 8 --fix pp=16",
                     "has more stages than the model has blocks; expected 1, 2, 4 or 8");
  expect_wrong_input(kSmallPlan + "--fix 'pp=1 rep=1 dp=1 cp=1 ep=1 tp=4'",
                     "takes 4 of 8 devices and leaves no axis for the others");
  expect_wrong_input(kSmallPlan + "--fix ep=8",
                     "--fix: 'ep=8' asks for axis ep, and the model has no experts; expected ep=1");
  expect_wrong_input(kSmallPlan + "--require ep",
                     "--require: 'ep' asks for axis ep, and the model has no experts");
  expect_wrong_input(kSmallPlan + "--fix 'rep=2 dp=1'",
                     "asks for replicas of groups of one device");
  expect_wrong_input(kSmallPlan + "--fix dp=8 --micro-batch 8",
                     "cannot share the 32 samples of a step in whole micro-batches of 8");
  expect_wrong_input(kSmallPlan + "--fix tp=8 --require zero3",
                     "plan: '--fix tp=8 --require zero3' leaves no plan of this job");
  expect_wrong_input(kSmallPlan + "--max-memory 0",
                     "--max-memory: '0' is no part of a device's memory");
  expect_wrong_input(kSmallPlan + "--recompute first=17", "expected first=1 to first=16, or full");
  expect_wrong_input("plan gpt2 --cluster h100-sxm:1 --seq 512 --global-batch 367567200",
                     "--global-batch: '367567200' is more than plans are compared for; expected 1 "
                     "to 1000000 samples per step");
  expect_wrong_input("plan llama-3.1-8b --cluster h100-sxm:1 --seq 1000000 --global-batch 1000000",
                     "--global-batch: '1000000' with 1000000 tokens each");
  expect_wrong_input("plan gpt2 --cluster mixed-a100-h100:2 --global-batch 8 --scale 7",
                     "--scale: '7' devices cannot be dealt to the groups of this cluster");
  expect_wrong_input(kSmallPlan + "--tokens 5Q", "is no number of tokens");
  expect_wrong_input(kSmallPlan + "--price b200=3", "names no device of the cluster");
  expect_wrong_input(kSmallPlan + "--price free", "has no price");
  expect_wrong_input(kSmallPlan + "--scale 8,x", "does not list numbers of devices");
  expect_wrong_input(kSmallPlan + "--front 3 --goal memory", "begins at the fastest plan");
}

// Only what the answer took differs from call to call, and that names its parts.
TEST(PlanTest, PrintsTheSameBytesButForItsSeconds) {
  const std::string call = kSmallPlan + "--fix dp=4 --front 2 --scale 8 --json";
  Json first = Json::parse(run(call).out);
  Json second = Json::parse(run(call).out);
  double parts = 0;
  for (const char* part : {"reading", "search", "proofs", "explanation", "front", "scale"}) {
    ASSERT_TRUE(first["seconds"].contains(part)) << part;
    if (std::string_view(part) != "proofs") parts += first["seconds"][part].get<double>();
  }
  EXPECT_GE(first["seconds"]["total"].get<double>(), parts);
  EXPECT_EQ(first["seconds"].size(), 7U);
  first.erase("seconds");
  second.erase("seconds");
  EXPECT_EQ(first.dump(), second.dump());
}

// Every line and column of the text stands on the page too.
TEST(PlanTest, PagesSayWhatTheTextSays) {
  const Folder folder;
  const std::string page = folder.file("page.html");
  run(kSmallPlan + "--fix dp=4 --require no-offload --front 2 --scale 8 --html " + page);
  for (const char* words :
       {"given: --fix dp=4 --require no-offload",
        "search complete: ", "no plan in the search space is faster under the time model",
        "the search space: at most "
        "one axis each of pp, rep, dp, cp, ep and tp",
        "invalid combinations skipped, by rule: ", "tok/s/dev", "are collapsed: the best is shown",
        "plan 1 is bound by ", "; a step costs $", "Sensitivity: what would help",
        "there are smaller ones", "of first", ">training<", ">price<", "Where its time goes",
        "placet simulate llama-3.2-1b"}) {
    EXPECT_TRUE(has(read(page), words)) << words;
  }
  run(kSmallPlan + "--max-memory 0.001 --html " + page);
  for (const char* words : {"given: --max-memory 0.001", "the placement that needs least takes ",
                            "its largest part: ", "--max-memory 0.001 allows"}) {
    EXPECT_TRUE(has(read(page), words)) << words;
  }
}

}  // namespace
}  // namespace placet
