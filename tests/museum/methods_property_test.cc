// Methods that are another training on purpose: each strategy with rewrites is refused under the
// condition that its file names, and what it promises holds as far as numbers show it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "algebra/verify.h"
#include "catalog/job.h"
#include "catalog/strategy_catalog.h"
#include "check/check.h"
#include "lower/lower.h"
#include "lower/small.h"
#include "placement/grammar.h"
#include "program/rewrite.h"
#include "program/text.h"
#include "program/wellformed.h"
#include "units/error.h"

namespace placet::testing {
namespace {

struct MethodCase {
  std::string method;
  std::string model;
  std::string placement;
  Condition condition;  // that must be broken
  std::string word;     // of the finding
  bool replicas_agree;  // whether all hold the same parameters after the first step

  friend std::ostream& operator<<(std::ostream& out, const MethodCase& c) {
    return out << c.method;
  }
};

constexpr auto kGradient = Condition::gradient_integrity;
constexpr auto kState = Condition::state_consistency;

// What a method breaks is argued in its file. Two steps are run: a delay of one update shows in the
// second. Replicas agree where the sum over all of them remains; on the small mesh of two devices a
// neighbour is all others.
const std::vector<MethodCase>& cases() {
  static const std::vector<MethodCase> kCases = {
      {"local-sgd", "gpt2", "dp=2:local-sgd", kGradient, "along dp hold is missing", false},
      {"local-sgd", "llama-3.1-8b", "dp=2:local-sgd tp=2:tp+sp", kGradient, "along dp hold", false},
      {"diloco", "llama-3.1-8b", "dp=4:diloco", kGradient, "along dp hold is missing", false},
      {"gossip", "gpt2", "dp=4:gossip", kGradient, "along dp hold is missing", true},
      {"async-parameter-server", "gpt2", "dp=2:async-parameter-server", kState, "before the step",
       true},
      {"async-pipeline", "gpt2", "pp=2:1f1b+async-pipeline dp=2:ddp", kState, "before the step",
       true},
      {"layer-local", "llama-3.1-8b", "pp=2:1f1b+layer-local dp=2:ddp", kGradient, "missing", true},
      {"subnetwork", "gpt2", "dp=2:subnetwork", kGradient, "masked.subnetwork", true},
      {"compressed-gradients", "gpt2", "dp=2:compressed-gradients", kGradient, "compressed.int8",
       true},
      {"compressed-activations", "gpt2", "pp=2:1f1b+compressed-activations dp=2:ddp", kGradient,
       "compressed.int8", true},
      {"lossy-pipeline", "gpt2", "dp=2:lossy-pipeline", kGradient, "different parts", true},
      {"qwz", "llama-3.1-8b", "rep=2:ddp dp=2:qwz", kState, "compressed.int8", true},
      {"qgz", "llama-3.1-8b", "rep=2:ddp dp=2:qgz", kGradient, "compressed.int4", true},
      {"zeropp", "llama-3.1-8b", "rep=2:ddp dp=2:zeropp", kState, "compressed.int8", true},
      {"local-capacity", "mixtral-8x7b", "dp=2:ddp ep=2:local-capacity", kGradient,
       "masked.local-capacity", true}};
  return kCases;
}

Job job_of(const std::string& model, const std::string& placement) {
  JobRequest request;
  request.model = model;
  request.placement = placement;
  request.sequence = 256;
  request.global_batch = 16;
  request.optimizer = "sgd";  // no states and no masters, so that the witnesses reach all ranks
  request.precision = "fp32";
  return load_job(find_catalog(), request);
}

class Methods : public ::testing::TestWithParam<MethodCase> {
 protected:
  Job job_ = job_of(GetParam().model, GetParam().placement);
};

TEST_P(Methods, AreRefusedForTheReasonInTheirFile) {
  ASSERT_EQ(job_.methods.size(), 1U);
  EXPECT_EQ(job_.methods[0].name, GetParam().method);
  EXPECT_EQ(job_.methods[0].breaks, name_of(GetParam().condition));
  const Verdict verdict = check(lower(job_));
  EXPECT_FALSE(verdict.equivalent);
  std::string told;
  const bool found = std::ranges::any_of(verdict.findings, [&](const CheckFinding& f) {
    const std::string text = f.found + " " + f.difference;
    told += std::string(name_of(f.condition)) + ": " + text + "\n";
    return f.condition == GetParam().condition && text.find(GetParam().word) != std::string::npos;
  });
  EXPECT_TRUE(found) << told;
}

TEST_P(Methods, AreAnotherTrainingInNumbersAndKeepReplicasAsPromised) {
  const Program program = lower_small(job_);
  require_wellformed(program, {.where = "rewritten"});
  EXPECT_EQ(program_from(to_text(program), "rewritten"), program);
  const Verification run = verify(program);
  EXPECT_FALSE(run.equal);
  EXPECT_FALSE(run.stuck.has_value()) << *run.stuck;
  // By tensor and entry: what each rank holds.
  std::map<std::pair<std::string, std::vector<std::int64_t>>, std::map<int, std::uint64_t>> held;
  for (const Witness& w : run.witness) {
    if (w.tensor != "loss") held[{w.tensor, w.index}][w.rank] = w.found;
  }
  std::size_t compared = 0;
  bool agree = true;
  for (const auto& [entry, by_rank] : held) {
    compared += by_rank.size() - 1;
    for (const auto& [rank, value] : by_rank) agree = agree && value == by_rank.begin()->second;
  }
  EXPECT_GT(compared, 0U);
  EXPECT_EQ(agree, GetParam().replicas_agree);
}

TEST_P(Methods, PrintAndReadBack) {
  const Vocabulary vocabulary = load_strategies(find_catalog()).vocabulary;
  EXPECT_EQ(job_.placement_text, GetParam().placement);
  EXPECT_EQ(parse_placement(job_.placement_text, vocabulary), job_.placement);
}

INSTANTIATE_TEST_SUITE_P(OfTheCatalogue, Methods, ::testing::ValuesIn(cases()));

TEST(MethodsTest, EachOfTheCatalogueHasACase) {
  for (const auto& [name, method] : load_strategies(find_catalog()).methods) {
    EXPECT_NE(std::ranges::find(cases(), name, &MethodCase::method), cases().end()) << name;
  }
}

// On an axis of one device nothing is rewritten.
TEST(MethodsTest, OneReplicaIsTheTrainingOfOneDevice) {
  EXPECT_TRUE(check(lower(job_of("gpt2", "dp=1:local-sgd"))).equivalent);
}

std::string refusal(const std::string& placement, const std::string& text) {
  try {
    rewritten(lower(job_of("gpt2", placement)), text, "test");
  } catch (const InputError& error) {
    return error.what();
  }
  return "taken";
}

TEST(RewriteTest, WhatMakesNoSenseIsRefusedByName) {
  const auto expect = [](const std::string& message, const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      EXPECT_NE(message.find(word), std::string::npos) << message;
    }
  };
  expect(refusal("dp=2:zero1", "every(dp, 2)"), {"test", "every(dp, 2)", "'dp'", "copies"});
  expect(refusal("dp=2:ddp", "every(dp, 1)"), {"'1'", "from 2 on"});
  expect(refusal("dp=2:ddp", "every(dp)"), {"number of arguments"});
  expect(refusal("dp=2:ddp", "mix(tp)"), {"'tp'", "no axis"});
  expect(refusal("dp=2:ddp", "sometimes"), {"is no rewrite"});
  expect(refusal("dp=2:ddp", "delete(send)"), {"test", "matches nothing"});
}

}  // namespace
}  // namespace placet::testing
