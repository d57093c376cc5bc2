// What has no step program yet is refused by name, with what is lowered instead: never lowered as
// if it had not been said.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "algebra/verify.h"
#include "catalog/job.h"
#include "check/check.h"
#include "lower/lower.h"
#include "lower/small.h"
#include "program/text.h"
#include "program/wellformed.h"
#include "units/error.h"

namespace placet::testing {
namespace {

Job job_of(const JobRequest& asked) {
  JobRequest request = asked;
  if (!request.model) request.model = "llama-3.2-1b";
  if (!request.sequence) request.sequence = 256;
  if (!request.global_batch) request.global_batch = 8;
  return load_job(find_catalog(), request);
}

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

/// The refusal in words; empty: the job is lowered.
std::string refusal_of(const Job& job) {
  try {
    lower(job, [](std::string_view pass, const Program& program) {
      require_wellformed(program, {.where = "after " + std::string(pass)});
    });
  } catch (const InputError& refused) {
    EXPECT_NE(refused.fault().value, "") << refused.what();
    EXPECT_NE(refused.fault().allowed, "") << refused.what();
    return refused.what();
  }
  return "";
}

std::string refusal_of(const JobRequest& request) { return refusal_of(job_of(request)); }

std::string refusal_of_placement(const std::string& text) {
  return refusal_of(JobRequest{.placement = text});
}

TEST(Scope, PlainJobIsLowered) { EXPECT_EQ(refusal_of_placement("dp=4:zero1 tp=2:tp"), ""); }

TEST(Scope, OptimizersOfBlocksAndRows) {
  for (const std::string name : {"adam-8bit", "adafactor"}) {
    const std::string text = refusal_of({.placement = "dp=4:zero1", .optimizer = name});
    EXPECT_PRED2(says, text, "--optimizer: '" + name + "'");
    EXPECT_PRED2(says, text, "in pieces");
  }
  EXPECT_EQ(refusal_of({.placement = "dp=4:zero1", .optimizer = "lion"}), "");
}

TEST(Scope, PartsOfActivationsInHostMemory) {
  EXPECT_PRED2(says, refusal_of_placement("dp=4:zero1+offload(activations=1/2)"),
               "a part of the state");
  EXPECT_EQ(refusal_of_placement("dp=4:zero1+offload(activations,nvme)"), "");
  EXPECT_EQ(refusal_of_placement("dp=4:zero1+offload(activations)"), "");
}

/// Both judges on the small program.
void expect_equal(const std::string& placement, const std::string& recompute = "none") {
  JobRequest request{.placement = placement};
  request.recompute = recompute;
  const Program program = lower_small(job_of(request));
  const Verdict verdict = check(program);
  EXPECT_TRUE(verdict.equivalent) << placement << ": "
                                  << (verdict.findings.empty() ? std::string()
                                                               : verdict.findings[0].difference);
  EXPECT_TRUE(verify(program).equal) << placement;
}

TEST(Scope, DividedCheckpointsComeTogetherBeforeTheirUnitIsMadeAgain) {
  for (const char* recompute : {"full", "every=2", "none"}) {
    expect_equal("dp=2:zero1 tp=2:tp+partitioned-checkpoints", recompute);
    expect_equal("pp=2:1f1b dp=2:zero3 tp=2:tp+partitioned-checkpoints", recompute);
  }
  JobRequest request{.placement = "tp=2:tp+partitioned-checkpoints"};
  request.recompute = "full";
  const std::string text = to_text(lower(job_of(request)));
  EXPECT_NE(text.find("slice input[u j] = stream[u j] over tp dim 1"), std::string::npos);
}

TEST(Scope, CutsOfSomeDims) {
  expect_equal("dp=2:zero1 tp=2:vocab-parallel");
  expect_equal("pp=2:1f1b dp=2:zero3 tp=2:vocab-parallel");
  expect_equal("tp=2:tensor(S,S,S,R,ffn)");
  expect_equal("dp=2:zero1 tp=2:tensor(S,S,S,S*,head,kv_head)");
}

/// Tensors of a block whose master weights rest in host memory, by name.
std::set<std::string> masters_on_host(const std::string& placement) {
  std::set<std::string> names;
  for (const Family& family : lower(job_of({.placement = placement})).families) {
    if (family.name.starts_with("master.block") && family.on_host) names.insert(family.name);
  }
  return names;
}

// Of a block of llama-3.2-1b in its order, in millions: q 4.2, k 1.0, v 1.0, o 4.2, gate, up and
// down 16.8 each; 60.8 in all, and two norms before what they are of. Of a quarter, 15.2, less than
// half of gate is left; of a half, 30.4, less than half of up.
TEST(Scope, PartsOfStatesInHostMemoryAreWholeTensors) {
  EXPECT_EQ(refusal_of_placement("dp=4:zero3+offload(optimizer=1/2)"), "");
  const std::string block = "master.block.";
  std::set<std::string> moved = {
      block + "input_layernorm.weight",  block + "self_attn.q_proj.weight",
      block + "self_attn.k_proj.weight", block + "self_attn.v_proj.weight",
      block + "self_attn.o_proj.weight", block + "post_attention_layernorm.weight"};
  EXPECT_EQ(masters_on_host("dp=4:zero1+offload(optimizer=1/4)"), moved);
  moved.insert(block + "mlp.gate_proj.weight");
  EXPECT_EQ(masters_on_host("dp=4:zero1+offload(optimizer=1/2)"), moved);
  EXPECT_EQ(masters_on_host("dp=4:zero1+offload(optimizer)").size(), 9);
}

// A program tells the device from what is off it, host memory or drives.
TEST(Scope, StatesOnNvmeAreOffTheDevice) {
  const auto text_of = [](const std::string& placement) {
    return to_text(lower_small(job_of({.placement = placement})));
  };
  EXPECT_EQ(text_of("dp=4:zero3+offload(optimizer,nvme)"),
            text_of("dp=4:zero3+offload(optimizer)"));
  const Program all = lower_small(job_of({.placement = "dp=4:zero-infinity-nvme"}));
  EXPECT_TRUE(std::ranges::any_of(all.families, &Family::on_host));
  EXPECT_TRUE(check(all).equivalent);
  EXPECT_TRUE(verify(all).equal);
}

TEST(Scope, UpdatesAwayFromTheirState) {
  EXPECT_PRED2(says, refusal_of_placement("dp=4:zero1+offload(optimizer)+update(device)"),
               "update(device)");
  EXPECT_PRED2(says, refusal_of_placement("dp=4:zero1+update(host)"), "update(host)");
  EXPECT_EQ(refusal_of_placement("dp=4:zero1+offload(optimizer)+update(host)"), "");
}

TEST(Scope, GathersAhead) {
  EXPECT_PRED2(says, refusal_of_placement("dp=4:zero3+prefetch(2)"), "ahead");
}

TEST(Scope, GradientsThatAreScatteredInAnotherOrderThanParametersRest) {
  EXPECT_PRED2(says, refusal_of_placement("x=2:batch(S*,S,R,R) dp=2:zero2"), "in each micro-batch");
  EXPECT_EQ(refusal_of_placement("x=2:batch(S*,S,R,R) dp=2:zero1"), "");
}

TEST(Scope, OtherModes) {
  EXPECT_PRED2(says, refusal_of_placement("dp=4:batch(R,R,M,R)"), "G=M");
  EXPECT_PRED2(says, refusal_of_placement("dp=2:batch(R,S*,R,R) x=2:zero1"), "some axes only");
  EXPECT_PRED2(says, refusal_of_placement("dp=2:batch(R,S*,R,R)+offload(optimizer)"),
               "gathered for the update");
  EXPECT_EQ(refusal_of_placement("dp=4:batch(R,S*,R,R)"), "");
  EXPECT_EQ(refusal_of({.placement = "dp=4:batch(R,S*,R,R)",
                        .precision = "fp32",
                        .optimizer = "sgd"}),  // no state to gather
            "");
}

TEST(Scope, BlocksApart) {
  EXPECT_PRED2(says, refusal_of_placement("dp=4:zero1;blocks 0-1:batch(R,R,R,R)"),
               "some blocks apart");
}

TEST(Scope, ColumnsOfTheStream) {
  expect_equal("tp=2:tp-2d-hidden");
  expect_equal("dp=2:zero1 x=2:tp-2d-hidden y=2:tp", "full");
  expect_equal("x=2:tp-2d-hidden y=2:tp+sp z=2:tp-3d-depth");
  expect_equal("i=2:tp-2d-rows j=2:tp-2d-columns", "selective");
  expect_equal("pp=2:zb-h1 dp=2:zero1 j=2:tp-2d-columns");
  // What comes together over an axis is divided by it last, in whatever order they stand.
  for (const char* other : {"y=2:tp", "y=2:tp+sp", "y=2:tp-2d-hidden", "y=2:vocab-parallel"}) {
    expect_equal(std::string("j=2:tp-2d-columns ") + other);
    expect_equal(std::string(other) + " j=2:tp-2d-columns");
  }
  expect_equal("a=2:tensor(S,S,S,R,hidden,ffn) y=2:tp");
  expect_equal("j=2:tp-2d-columns tp=2:tp+partitioned-checkpoints", "full");
}

TEST(Scope, UnevenPartsThatComeTogether) {
  EXPECT_PRED2(says, refusal_of_placement("j=2:tp-2d-columns tp=3:tp"), "unevenly");
  EXPECT_EQ(refusal_of_placement("j=6:tp-2d-columns"), "");
  EXPECT_EQ(refusal_of_placement("j=2:tp-2d-columns tp=2:tp"), "");
}

TEST(Scope, OtherCutsOfClasses) {
  EXPECT_PRED2(says, refusal_of_placement("tp=2:tp;embedding:batch(R,R,R,R)"), "embedding");
}

TEST(Scope, KeysRoundARing) {
  EXPECT_EQ(refusal_of_placement("cp=2:ring"), "");
  EXPECT_EQ(refusal_of_placement("cp=2:gather"), "");
  EXPECT_EQ(refusal_of_placement("cp=2:ring x=1:ring"), "");
  EXPECT_EQ(refusal_of_placement("cp=2:ring sp=2:heads"), "");
  EXPECT_PRED2(says, refusal_of_placement("sp=2:heads cp=2:ring"), "the ring first");
  EXPECT_PRED2(says, refusal_of_placement("cp=2:ring x=2:ring"), "a ring of several axes");
  EXPECT_PRED2(says, refusal_of_placement("cp=2:ring x=2:gather"), "round a ring and gather them");
}

TEST(Scope, OtherTensorsRoundARing) {
  Job job = job_of({.placement = "cp=2:ring"});
  job.attention.at(0).steps.at(0).tensors = {AttentionTensor::query};
  EXPECT_PRED2(says, refusal_of(job), "other tensors round a ring");
}

TEST(Scope, RoutersWithCapacity) {
  EXPECT_PRED2(
      says,
      refusal_of({.model = "mixtral-8x7b", .placement = "ep=2:ep", .routing = "capacity=1.25"}),
      "drops tokens");
  EXPECT_EQ(refusal_of({.model = "mixtral-8x7b", .placement = "ep=2:ep", .routing = "worst"}), "");
  const JobRequest dropping{.model = "mixtral-8x7b",
                            .placement = "ep=2:ep",
                            .engine = "megatron-bridge@2025.09+dropping"};
  EXPECT_PRED2(says, refusal_of(dropping),
               "drops tokens past an expert's capacity, by their order");
  EXPECT_EQ(refusal_of({.placement = "dp=2:zero1", .engine = "megatron-bridge@2025.09+dropping"}),
            "")
      << "a dense model has no capacity";
}

TEST(Scope, BalanceOverMicroBatches) {
  const auto refusal = [](std::int64_t samples) {
    return refusal_of({.model = "mixtral-8x7b",
                       .placement = "ep=2:ep",
                       .global_batch = samples,
                       .balance_loss = "global"});
  };
  EXPECT_PRED2(says, refusal(8), "the loads of all micro-batches");
  EXPECT_EQ(refusal(2), "");
}

TEST(Scope, SinksWhereHeadsAreExchanged) {
  EXPECT_PRED2(says, refusal_of({.model = "gpt-oss-20b", .placement = "cp=2:ulysses"}),
               "attention with sinks");
}

TEST(Scope, PoliciesOfEngines) {
  Job job = job_of({.placement = "dp=4:zero1"});
  job.recompute = {.kind = Recompute::Kind::selective, .policy = "op"};
  EXPECT_PRED2(says, refusal_of(job), "an engine's own policy");
}

// 2 samples in each of 4096 micro-batches are 8192.
TEST(Scope, MicroBatchesWithoutEnd) {
  EXPECT_PRED2(says, refusal_of({.placement = "pp=2:1f1b dp=2:zero1", .global_batch = 100000}),
               "8192 samples on this placement");
  EXPECT_PRED2(says, refusal_of({.placement = "dp=2:zero1", .global_batch = 1000000000}),
               "makes 500000000 micro-batches");
}

TEST(Scope, StagesWithoutBlocks) {
  EXPECT_PRED2(says, refusal_of({.placement = "pp=32:1f1b", .global_batch = 64}),
               "without a block");
}

}  // namespace
}  // namespace placet::testing
