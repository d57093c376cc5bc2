// What training engines refuse, as their code was read: each beside the nearest job that they take.
#include <gtest/gtest.h>

#include <algorithm>

#include "derive/derive.h"
#include "derive/traffic.h"

namespace placet {
namespace {

/// Findings of the rule `engine`.
std::size_t refusals(const Job& job) {
  const Derivation derived = derive(job);
  return static_cast<std::size_t>(
      std::ranges::count_if(derived.findings, [](const Finding& f) { return f.rule == "engine"; }));
}

std::size_t refusals(const std::string& engine, const std::string& placement, int blocks = 4) {
  return refusals(engine_job(engine, wide(blocks), placement, 8, 8));
}

/// Refusals of a model with other shapes, of 8 tokens and 8 samples unless said.
std::size_t refusals_of(const Architecture& shapes, const std::string& engine,
                        const std::string& placement, std::int64_t samples = 8) {
  return refusals(engine_job(engine, build_model(shapes), placement, 8, samples));
}

std::size_t refusals_of_recomputed(const std::string& engine, const std::string& placement) {
  Job job = engine_job(engine, wide(4), placement, 8, 8);
  job.recompute.kind = Recompute::Kind::full;
  return refusals(job);
}

TEST(Engines, RefuseWhatTheirCodeRefuses) {
  EXPECT_EQ(refusals("deepspeed@0.19.2", "pp=2:1f1b dp=2:zero1"), 0U);
  EXPECT_EQ(refusals("deepspeed@0.19.2", "pp=2:1f1b dp=2:zero2"), 1U);
  EXPECT_EQ(refusals("megatron@2026", "tp=2:tp"), 0U);
  EXPECT_EQ(refusals("megatron@2026", "tp=8:tp"), 1U);    // 4 heads
  EXPECT_EQ(refusals("megatron@2026", "pp=3:1f1b"), 1U);  // 4 blocks
  EXPECT_EQ(refusals("megatron@2026", "pp=3[2,1,1]:1f1b"), 0U);
  EXPECT_EQ(refusals("megatron@2024", "pp=2[2,2]:1f1b"), 0U);
  EXPECT_EQ(refusals("megatron@2024", "pp=2[3,1]:1f1b"), 1U);
  EXPECT_EQ(refusals("megatron@2026", "cp=8:ring"), 1U);  // 8 tokens, 16 chunks
  EXPECT_EQ(refusals("torchtitan@2026.02", "tp=2:tp"), 1U);
  EXPECT_EQ(refusals("torchtitan@2026.02", "tp=2:tp+sp"), 0U);
  EXPECT_EQ(refusals("nanotron@2026.04", "dp=2:zero2"), 2U);  // of optimizer state, of gradients
  EXPECT_EQ(refusals("megatron@2021", "tp=2:tp+sp"), 1U);
  EXPECT_EQ(refusals("megatron-deepspeed@2022+bf16", "dp=2:zero1"), 0U);
  EXPECT_EQ(refusals("megatron-deepspeed@2022", "dp=2:zero1"), 1U);
}

TEST(Engines, RefuseShardsThatTheyDoNotKnow) {
  for (const char* engine : {"megatron@2026", "nanotron@2024.12", "megatron-deepspeed@2022+bf16"}) {
    EXPECT_EQ(refusals(engine, "dp=2:zero1"), 0U) << engine;
    EXPECT_EQ(refusals(engine, "dp=2:zero2"), 1U) << engine;
    EXPECT_EQ(refusals(engine, "dp=2:zero3"), 1U) << engine;
  }
  EXPECT_EQ(refusals("megatron@2026+fsdp", "dp=2:zero3"), 0U);
  EXPECT_EQ(refusals("nanotron@2026.04", "dp=2:zero1"), 1U);
  EXPECT_EQ(refusals("nanotron@2024.12", "pp=2:interleaved(2)"), 1U);
  for (const char* engine : {"pytorch@2.9", "pytorch-fsdp1@2.0", "accelerate@1"}) {
    EXPECT_EQ(refusals(engine, "dp=2:zero1"), 1U) << engine;
    EXPECT_EQ(refusals(engine, "dp=2:fsdp"), 0U) << engine;
  }
  EXPECT_EQ(refusals("accelerate@1", "dp=2:ddp tp=2:tp"), 1U);
  EXPECT_EQ(refusals("accelerate@1", "rep=2:ddp dp=2:fsdp tp=2:tp"), 0U);
  EXPECT_EQ(refusals("accelerate@1", "rep=2:ddp dp=2:fsdp tp=2:tp+sp"), 1U);
}

TEST(Engines, RefuseOffloadThatTheirCodeRefuses) {
  const std::string host = "dp=2:zero1+offload(activations)";
  EXPECT_EQ(refusals("megatron@2026", host), 0U);
  EXPECT_EQ(refusals("megatron@2026", "pp=2:1f1b " + host), 1U);
  EXPECT_EQ(refusals_of_recomputed("megatron@2026", host), 1U);
  EXPECT_EQ(refusals("deepspeed@0.19.2", "dp=2:zero1+offload(optimizer)"), 0U);
  EXPECT_EQ(refusals("deepspeed@0.19.2", "dp=2:zero1+offload(optimizer=0.5)"), 1U);
  EXPECT_EQ(refusals("deepspeed@0.19.2", "dp=2:zero3+offload(optimizer=0.5)"), 0U);
}

TEST(Engines, RefusePartitionedCheckpointsThatTheirCodeRefuses) {
  EXPECT_EQ(refusals_of_recomputed("megatron@2026", "tp=2:tp+partitioned-checkpoints"), 0U);
  EXPECT_EQ(refusals_of_recomputed("megatron@2026", "tp=2:tp+sp+partitioned-checkpoints"), 1U);
  EXPECT_EQ(refusals("megatron@2026", "tp=2:tp+partitioned-checkpoints"), 1U);
}

TEST(Engines, RefuseCombinationsOfAxesThatTheirCodeRefuses) {
  EXPECT_EQ(refusals("megatron@2026", "cp=2:heads"), 0U);
  EXPECT_EQ(refusals("megatron@2026", "cp=4:heads"), 1U);  // 2 kv heads
  EXPECT_EQ(refusals("megatron@2026", "cp=4:ring"), 0U);
  EXPECT_EQ(refusals("torchtitan@2026.02", "dp=4:ddp"), 0U);
  EXPECT_EQ(refusals("torchtitan@2026.02", "dp=2:ddp tp=2:tp+sp"), 1U);
  EXPECT_EQ(refusals("torchtitan@2026.02", "rep=2:ddp dp=2:fsdp tp=2:tp+sp"), 0U);
  Architecture tied = wide_architecture(4);
  tied.head.tied = true;
  const auto staged = [&](const char* placement) {
    return refusals(engine_job("torchtitan@2026.02", build_model(tied), placement, 8, 8));
  };
  EXPECT_EQ(staged("dp=2:fsdp"), 0U);
  EXPECT_EQ(staged("pp=2:1f1b dp=2:fsdp+keep-step"), 1U);
  EXPECT_EQ(staged("pp=2:1f1b dp=2:fsdp"), 2U);
}

TEST(Engines, RefuseSchedulesThatTheyDoNotHave) {
  EXPECT_EQ(refusals("megatron@2026", "pp=4:interleaved(2)", 8), 0U);
  EXPECT_EQ(refusals("megatron@2026", "pp=4:zb-v", 8), 1U);
  EXPECT_EQ(refusals("deepspeed@0.19.2", "pp=4:1f1b", 8), 0U);
  EXPECT_EQ(refusals("deepspeed@0.19.2", "pp=4:interleaved(2)", 8), 1U);
  EXPECT_EQ(refusals("nanotron@2026.04", "pp=4:gpipe", 8), 0U);
  EXPECT_EQ(refusals("nanotron@2026.04", "pp=4:dualpipe", 8), 1U);
  EXPECT_EQ(refusals("torchtitan@2026.02", "pp=4:zb-v", 8), 0U);
  EXPECT_EQ(refusals("torchtitan@2026.02", "pp=4:zb-h1", 8), 1U);
}

// 12 query heads and 3 key/value heads: 3 ranks hold one of them each, 6 share them in pairs; 2 and
// 4 ranks would tear one.
TEST(Engines, RefuseKeyValueHeadsThatRanksWouldTear) {
  Architecture odd = wide_architecture(4);
  attention_in(odd).heads = 12;
  attention_in(odd).kv_heads = 3;
  EXPECT_EQ(refusals_of(odd, "megatron@2026", "tp=3:tp"), 0U);
  EXPECT_EQ(refusals_of(odd, "megatron@2026", "tp=6:tp"), 0U);
  EXPECT_EQ(refusals_of(odd, "megatron@2026", "tp=2:tp"), 1U);
  EXPECT_EQ(refusals_of(odd, "megatron@2026", "tp=4:tp"), 1U);
}

// Groups of 4 micro-batches, one per stage: 8 are two, 6 are one and a half. Plain 1F1B takes any.
TEST(Engines, RefuseMicroBatchesThatFillNoGroupOfAnInterleavedSchedule) {
  for (const char* engine : {"megatron@2026", "megatron@2025", "megatron@2022", "megatron@2021"}) {
    const Architecture shapes = wide_architecture(8);
    EXPECT_EQ(refusals_of(shapes, engine, "pp=4:interleaved(2)", 8), 0U) << engine;
    EXPECT_EQ(refusals_of(shapes, engine, "pp=4:interleaved(2)", 6), 1U) << engine;
    EXPECT_EQ(refusals_of(shapes, engine, "pp=4:1f1b", 6), 0U) << engine;
  }
}

// 4 experts.
TEST(Engines, RefuseExpertsThatTheyCannotPlace) {
  const Architecture shapes = expert_architecture(4);
  EXPECT_EQ(refusals_of(shapes, "megatron@2026", "ep=2:ep"), 0U);
  EXPECT_EQ(refusals_of(shapes, "megatron@2026", "ep=4:ep"), 0U);
  EXPECT_EQ(refusals_of(shapes, "megatron@2026", "ep=3:ep", 9), 1U);
  EXPECT_EQ(refusals_of(shapes, "megatron@2026", "ep=2:ep tp=2:tp+sp"), 0U);
  EXPECT_EQ(refusals_of(shapes, "megatron@2026", "ep=2:ep tp=2:tp"), 1U);
  EXPECT_EQ(refusals("megatron@2026", "tp=2:tp"), 0U);  // no experts, no need
}

// 4 heads: 2 and 4 devices take whole heads, 3 the uneven path, 8 would be left without.
TEST(Engines, RefuseMoreDevicesThanHeads) {
  EXPECT_EQ(refusals("deepspeed@0.19.2", "sp=2:ulysses+zero3"), 0U);
  EXPECT_EQ(refusals("deepspeed@0.19.2", "sp=3:ulysses+zero3"), 0U);
  EXPECT_EQ(refusals("deepspeed@0.19.2", "sp=4:ulysses+zero3"), 0U);
  EXPECT_EQ(refusals("deepspeed@0.19.2", "sp=8:ulysses+zero3"), 1U);
}

// 8 tokens in 2 x tp x cp parts.
TEST(Engines, RefuseSequencesThatDoNotDivide) {
  EXPECT_EQ(refusals("torchtitan@2026.02", "cp=2:gather+fsdp tp=2:tp+sp"), 0U);
  EXPECT_EQ(refusals("torchtitan@2026.02", "cp=4:gather+fsdp tp=2:tp+sp"), 1U);
  EXPECT_EQ(refusals("torchtitan@2026.02", "tp=8:tp+sp"), 1U);
  EXPECT_EQ(refusals("torchtitan@2026.02", "cp=3:gather+fsdp"), 1U);
}

// Tokens of one sequence over several devices: their states lie over data ranks all the same.
TEST(Engines, RefuseStatesOnSequenceAxesAsOnDataAxes) {
  EXPECT_EQ(refusals("megatron@2026", "cp=2:heads+zero1"), 0U);
  EXPECT_EQ(refusals("megatron@2026", "cp=2:heads+zero2"), 1U);
  EXPECT_EQ(refusals("megatron@2026", "cp=2:heads+zero3"), 1U);
  EXPECT_EQ(refusals("megatron@2026", "dp=2:batch(S*,S,R,R)"), 1U);
  EXPECT_EQ(refusals("megatron@2026+fsdp", "cp=2:heads+zero3"), 0U);
  EXPECT_EQ(refusals("nanotron@2026.04", "cp=2:ring+ddp"), 0U);
  EXPECT_EQ(refusals("nanotron@2026.04", "cp=2:ring+zero1"), 1U);
  EXPECT_EQ(refusals("nanotron@2026.04", "cp=2:ring+zero2"), 2U);  // of optimizer, of gradients
  EXPECT_EQ(refusals("pytorch@2.9", "cp=2:ring+zero1"), 1U);
  EXPECT_EQ(refusals("pytorch@2.9", "cp=2:ring+fsdp"), 0U);
  EXPECT_EQ(refusals("pytorch@2.9", "rep=2:zero1 dp=2:fsdp"), 1U);  // each axis on its own
  EXPECT_EQ(refusals("deepspeed@0.19.2", "pp=2:1f1b sp=2:ulysses+zero1"), 0U);
  EXPECT_EQ(refusals("deepspeed@0.19.2", "pp=2:1f1b sp=2:ulysses+zero2"), 1U);
  EXPECT_EQ(refusals("deepspeed@0.19.2", "sp=2:ulysses+zero3+offload(optimizer=0.5)"), 0U);
  EXPECT_EQ(refusals("torchtitan@2026.02", "cp=2:gather+fsdp"), 0U);
  EXPECT_EQ(refusals("torchtitan@2026.02", "cp=2:gather+ddp"), 1U);
  EXPECT_EQ(refusals("torchtitan@2026.02", "cp=2:gather+zero1"), 2U);  // and of whole parameters
}

TEST(Engines, RefuseAxesThatTheyDoNotHave) {
  for (const char* engine :
       {"pytorch-ddp@2.11", "pytorch-fsdp1@2.0", "pytorch-fsdp1@1.12", "llm-foundry@2023"}) {
    EXPECT_EQ(refusals(engine, "dp=2:ddp"), 0U) << engine;
    EXPECT_EQ(refusals(engine, "pp=2:1f1b"), 1U) << engine;
    EXPECT_EQ(refusals(engine, "tp=2:tp"), 1U) << engine;
    EXPECT_EQ(refusals(engine, "cp=2:ring"), 1U) << engine;
    EXPECT_EQ(refusals_of(expert_architecture(4), engine, "ep=2:ep"), 1U) << engine;
  }
  EXPECT_EQ(refusals("accelerate@1", "pp=2:1f1b dp=2:fsdp"), 1U);
  EXPECT_EQ(refusals("accelerate@1", "dp=2:fsdp cp=2:gather+fsdp tp=2:tp"), 0U);
  EXPECT_EQ(refusals("accelerate@1", "dp=2:fsdp cp=2:heads+fsdp"), 1U);
  EXPECT_EQ(refusals("accelerate@1", "rep=2:ddp cp=2:ring"), 1U);  // replicas beside no shards
  EXPECT_EQ(refusals_of(expert_architecture(4), "accelerate@1", "ep=2:ep"), 1U);
  EXPECT_EQ(refusals("nanotron@2024.12", "cp=2:ring"), 1U);
  EXPECT_EQ(refusals("deepspeed@0.3", "sp=2:ulysses+zero3"), 1U);
  EXPECT_EQ(refusals_of(expert_architecture(4), "deepspeed@0.3", "ep=2:ep"), 1U);
}

TEST(Engines, RefuseWaysOfAttentionThatTheyDoNotHave) {
  EXPECT_EQ(refusals("deepspeed@0.19.2", "sp=2:ring+zero3"), 1U);
  EXPECT_EQ(refusals("torchtitan@2026.02", "cp=2:heads+fsdp"), 1U);
  EXPECT_EQ(refusals("torchtitan@2026.02", "cp=2:ring+fsdp"), 0U);
}

// 4 blocks, with embedding and output 6 parts.
TEST(Engines, RefuseMoreStagesThanPartsOfTheModel) {
  EXPECT_EQ(refusals("torchtitan@2026.02", "pp=4:1f1b"), 0U);
  EXPECT_EQ(refusals("torchtitan@2026.02", "pp=6:1f1b"), 0U);
  EXPECT_EQ(refusals("torchtitan@2026.02", "pp=7:1f1b"), 1U);
  EXPECT_EQ(refusals("torchtitan@2026.02", "pp=4:interleaved(2)"), 1U);
}

// Blocks without attention, whose recurrence has 2 pieces that cannot be torn (groups of a state
// space, key heads of a delta net).
TEST(Engines, RefuseRecurrencesThatRanksWouldTear) {
  Architecture shapes = wide_architecture(4);
  StateSpace recurrence{.inner = 16, .pieces = 2};
  recurrence.projections = {
      {.names = {.weight = "in"}, .slices = {{StateSpace::Stream::mixed, 32}}}};
  recurrence.output.weight = "out";
  shapes.shapes[0][0].branches[0].mixer = recurrence;
  EXPECT_EQ(refusals_of(shapes, "megatron@2026", "tp=2:tp"), 0U);
  EXPECT_EQ(refusals_of(shapes, "megatron@2026", "tp=4:tp"), 1U);
  EXPECT_EQ(refusals_of(shapes, "megatron@2026", "cp=2:ring tp=2:tp"), 1U);
  EXPECT_EQ(refusals("megatron@2026", "tp=4:tp"), 0U);  // attention alone
}

}  // namespace
}  // namespace placet
