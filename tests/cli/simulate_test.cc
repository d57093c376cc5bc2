// placet simulate from outside: the estimate, the events, the picture, the files, the what-ifs.
#include <gtest/gtest.h>

#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/program_run.h"

namespace placet {
namespace {

using Json = nlohmann::json;

TEST(SimulateTest, TokensAreThoseThatTheStepWorksOn) {
  const auto rate = [](const std::string& batch) {
    const Json json = Json::parse(
        run("simulate gpt2 --cluster h100-sxm:1 --placement dp=8:ddp --json " + batch).out);
    return json["tokens_per_second"].get<double>();
  };
  EXPECT_EQ(rate("--global-batch 15"), rate("--global-batch 8"));
  EXPECT_EQ(rate("--global-batch 8 --micro-batch 2"), rate("--global-batch 16 --micro-batch 2"));
}

TEST(SimulateTest, TermsAddUpToTheStep) {
  const Result result = run(
      "simulate llama-3.2-1b --cluster h100-sxm:2 --placement 'dp=8:zero1 tp=2:tp+sp' --seq 2048 "
      "--global-batch 16 --json");
  ASSERT_EQ(result.status, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["schema"], "placet.timeline/1");
  double sum = 0;
  for (const Json& term : json["terms"]) sum += term["seconds"].get<double>();
  const double step = json["step_seconds"].get<double>();
  EXPECT_NEAR(sum, step, 1e-9);
  EXPECT_NEAR(json["tokens_per_second"].get<double>(), 16 * 2048 / step, 1e-3);
  EXPECT_GT(json["mfu"].get<double>(), 0);
  EXPECT_LT(json["mfu"].get<double>(), 1);
  EXPECT_TRUE(json["breakdown"]["exposed_communication"].contains("tp"));
  EXPECT_EQ(json["stages"].size(), 1U);
  EXPECT_FALSE(json["binds"].get<std::string>().empty());
}

TEST(SimulateTest, TextSaysWhereTimeGoes) {
  const Result result =
      run("simulate llama-3.2-1b --cluster h100-sxm:1 --placement 'pp=2:1f1b dp=4:ddp' --seq 2048 "
          "--global-batch 32");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(has(result.out, "One step of llama-3.2-1b"));
  EXPECT_TRUE(has(result.out, "bound by"));
  EXPECT_TRUE(has(result.out, "waiting for stages"));
}

const std::string kPipeline =
    "simulate llama-3.2-1b --cluster h100-sxm:1 --placement 'pp=2:1f1b dp=4:zero1' --seq 2048 "
    "--global-batch 32 ";

// The events bound the estimate from above, and stages account for all of the step.
TEST(SimulateTest, EventsAccountForTheStep) {
  const Json json = Json::parse(run(kPipeline + "--json").out);
  const Json& simulated = json["simulated"];
  const double step = simulated["step_seconds"].get<double>();
  EXPECT_GE(step, json["step_seconds"].get<double>() * (1 - 1e-9));
  EXPECT_EQ(simulated["undisturbed_seconds"], simulated["step_seconds"]);
  ASSERT_EQ(simulated["stages"].size(), 2U);
  for (const Json& stage : simulated["stages"]) {
    double sum = stage["idle_seconds"].get<double>();
    for (const Json& spent : stage["spent_seconds"]) sum += spent.get<double>();
    EXPECT_NEAR(sum, step, 1e-9);
  }
  for (const Json& link : simulated["links"]) {
    EXPECT_GT(link["busy"].get<double>(), 0);
    EXPECT_LE(link["busy"].get<double>(), 1 + 1e-9);
  }
}

// At every width, in a pipe and in colour, rows end at the width.
TEST(SimulateTest, ThePictureFitsTheWidth) {
  for (const int width : {40, 80, 99, 100, 160}) {
    const Result result = run(kPipeline + "--width " + std::to_string(width));
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_TRUE(has(result.out, "The pipeline"));
    for (const char* row : {"\n stage 0  ", "\n stage 1  "}) {
      const std::size_t begin = result.out.find(row);
      ASSERT_NE(begin, std::string::npos) << width;
      const std::size_t end = result.out.find('\n', begin + 1);
      EXPECT_EQ(end - begin - 1, static_cast<std::size_t>(width));
    }
  }
  EXPECT_TRUE(has(run(kPipeline + "--color always").out, "\x1b[34mF"));
}

TEST(SimulateTest, AStragglerCostsTime) {
  const Json plain = Json::parse(run(kPipeline + "--json").out);
  const Json slow = Json::parse(run(kPipeline + "--straggler 1=2 --json").out);
  EXPECT_EQ(slow["step_seconds"], plain["step_seconds"]);
  EXPECT_EQ(slow["simulated"]["undisturbed_seconds"], plain["simulated"]["step_seconds"]);
  EXPECT_GT(slow["simulated"]["step_seconds"].get<double>(),
            1.5 * plain["simulated"]["step_seconds"].get<double>());
  EXPECT_EQ(slow["simulated"]["stragglers"][0]["stage"], 1);
  EXPECT_TRUE(
      has(run(kPipeline + "--straggler 'stage 1=2'").out, "with stage 1 slower by a factor of 2"));
  // The flag takes one word: the model may follow it.
  const std::string first = std::string("simulate --straggler 1=2") + kPipeline.substr(8);
  EXPECT_EQ(Json::parse(run(first + "--json").out)["simulated"]["stragglers"].size(), 1);
}

TEST(SimulateTest, WrongStragglersAreRefused) {
  const auto message = [](const std::string& word) {
    const Result result = run(kPipeline + "--straggler " + word);
    EXPECT_EQ(result.status, 2) << word;
    return result.err;
  };
  EXPECT_TRUE(has(message("1"), "--straggler: '1' has no factor; expected STAGE=FACTOR"));
  EXPECT_TRUE(has(message("2=2"), "names no stage of the job; expected a stage from 0 to 1"));
  EXPECT_TRUE(has(message("=2"), "names no stage of the job"));
  EXPECT_TRUE(has(message("0=nan"), "has no factor in range; expected 0.01 to 100"));
  EXPECT_TRUE(has(message("0=0"), "has no factor in range"));
  EXPECT_TRUE(has(message("0=1e999"), "has no factor in range"));
  EXPECT_TRUE(has(message("0=2 --straggler 0=3"), "names a stage for the second time"));
}

// One process per stage, one thread per lane; slices of a thread follow each other, and what the
// device does adds up to what its stage accounts for.
TEST(SimulateTest, ATraceHoldsTheStep) {
  const Folder folder;
  const std::string path = folder.file("trace.json");
  const Json json = Json::parse(run(kPipeline + "--json --trace " + path).out);
  const Json trace = Json::parse(read(path));
  std::map<std::pair<int, int>, double> end;
  std::map<int, double> computing;
  std::map<int, std::string> processes;
  for (const Json& event : trace["traceEvents"]) {
    const int process = event["pid"].get<int>();
    if (event["ph"] == "M") {
      if (event["name"] == "process_name") processes[process] = event["args"]["name"];
      continue;
    }
    ASSERT_EQ(event["ph"], "X");
    double& before = end[{process, event["tid"].get<int>()}];
    EXPECT_GE(event["ts"].get<double>(), before - 1e-3);
    before = event["ts"].get<double>() + event["dur"].get<double>();
    if (event["tid"] == 0) computing[process] += event["dur"].get<double>() * 1e-6;
  }
  EXPECT_EQ(processes, (std::map<int, std::string>{{0, "stage 0"}, {1, "stage 1"}}));
  const double step = json["simulated"]["step_seconds"].get<double>();
  EXPECT_EQ(trace["otherData"]["step_seconds"].get<double>(), step);
  EXPECT_EQ(trace["otherData"]["slices_left_out"], 0);
  for (const Json& stage : json["simulated"]["stages"]) {
    EXPECT_NEAR(computing[stage["stage"].get<int>()], step - stage["idle_seconds"].get<double>(),
                1e-9);
  }
}

TEST(SimulateTest, FilesThatCannotBeWrittenAreRefused) {
  for (const std::string flag : {"--trace", "--html"}) {
    const Result result = run(kPipeline + flag + " /no/such/folder/file");
    EXPECT_EQ(result.status, 2) << flag;
    EXPECT_TRUE(has(result.err, flag + ": '/no/such/folder/file' cannot be written"));
  }
}

// A page of its own: drawings inside, nothing fetched.
TEST(SimulateTest, ThePageDrawsThePipeline) {
  const Folder folder;
  const std::string path = folder.file("step.html");
  ASSERT_EQ(run(kPipeline + "--html " + path).status, 0);
  const std::string page = read(path);
  for (const char* part : {"<!doctype html>", "<svg", "s-forward", "s-backward", "stage 1"}) {
    EXPECT_TRUE(has(page, part)) << part;
  }
  EXPECT_FALSE(has(page, "http://"));
  EXPECT_FALSE(has(page, "https://"));
}

// Tensor parallelism across hosts is what costs most there.
TEST(SimulateTest, AdviceSaysWhatToChangeFirst) {
  const std::string job =
      "--cluster h100-sxm:2 --seq 2048 --global-batch 32 --engine placet --placement ";
  const Json slow =
      Json::parse(run("simulate llama-3.1-8b " + job + "'tp=2:tp+sp dp=8:zero1' --json").out);
  ASSERT_FALSE(slow["findings"].empty());
  const Json& first = slow["findings"][0];
  EXPECT_EQ(first["rule"], "axis-order");
  EXPECT_EQ(first["severity"], "advice");
  EXPECT_EQ(first["where"], "axis tp");
  // The gain that it names is that of the job it names.
  const Json better =
      Json::parse(run("simulate llama-3.1-8b " + job + "'dp=8:zero1 tp=2:tp+sp' --json").out);
  const double gain = slow["step_seconds"].get<double>() / better["step_seconds"].get<double>() - 1;
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << gain * 100 << " % more tokens/s";
  EXPECT_TRUE(has(first["cure"].get<std::string>(), text.str())) << first["cure"];
}

TEST(SimulateTest, NeedsACluster) {
  const Result result = run("simulate 70B --placement dp=8:ddp");
  EXPECT_EQ(result.status, 2);
  EXPECT_TRUE(
      has(result.err, "--cluster: is missing; expected devices and links, on which time depends"));
}

TEST(SimulateTest, NeedsShapes) {
  for (const std::string command :
       {"simulate params=70e9 --placement dp=8:zero3", "plan params=70e9"}) {
    const Result result = run(command + " --cluster h100-sxm:1 --seq 2048 --global-batch 64");
    EXPECT_EQ(result.status, 2) << command;
    EXPECT_TRUE(has(result.err, "is a bare count of parameters; expected a model with shapes"))
        << result.err;
  }
}

// A number alone is an ordinary decoder of that size where shapes are needed, and that is said.
TEST(SimulateTest, ANumberAloneIsAnOrdinaryDecoder) {
  for (const std::string command : {"simulate 7B --placement dp=8:zero3", "plan 7B"}) {
    const Result result = run(command + " --cluster h100-sxm:1 --seq 2048 --global-batch 64");
    EXPECT_EQ(result.status, 0) << command << result.err;
    EXPECT_TRUE(has(result.out, "decoder=7B: an ordinary decoder of 6990073856 parameters"))
        << result.out;
  }
}

}  // namespace
}  // namespace placet
