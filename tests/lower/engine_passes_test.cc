// What engines change of gathers and reductions is in the program: each pass of the plan of a step
// with a case of two devices, and all of them under the checker and the executor.
#include <gtest/gtest.h>

#include "algebra/verify.h"
#include "catalog/job.h"
#include "check/check.h"
#include "check/tally.h"
#include "lower/lower.h"
#include "lower/small.h"

namespace placet::testing {
namespace {

using Facts = void (*)(Profile&);

constexpr Facts kNone = [](Profile&) {};
constexpr Facts kHeadStays = [](Profile& p) { p.last_unit_stays_gathered = true; };
constexpr Facts kBlockStays = [](Profile& p) { p.last_block_stays_gathered = true; };
constexpr Facts kSmallWhole = [](Profile& p) { p.persistent_elements = 10'000; };
constexpr Facts kReducedOnce = [](Profile& p) { p.defers_scatter = true; };
constexpr Facts kReducedOnceWide = [](Profile& p) {
  p.defers_scatter = p.defers_as_reduced = true;
};
constexpr Facts kHeldOverPipeline = [](Profile& p) { p.layer_cut_defers_sharding = true; };
constexpr Facts kReplicasEach = [](Profile& p) { p.replicas_follow_scatter = true; };

/// gpt2, two micro-batches of one sample on each replica.
Job job_of(const std::string& placement, std::int64_t samples, Facts facts) {
  JobRequest request{.model = "gpt2", .placement = placement};
  request.sequence = 128;
  request.micro_batch = 1;
  request.global_batch = samples;
  Job job = load_job(find_catalog(), request);
  facts(job.profile);
  return job;
}

/// Calls and bytes of the messages of a sort that the first device takes part in.
struct Sum {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;
  friend bool operator==(const Sum&, const Sum&) = default;
};

Sum sum_of(const Program& program, InstructionKind kind, StepPhase phase) {
  Sum sum;
  const Tally all = tally(program, 0, first_of(program, program.classes.front()));
  for (const TalliedMessage& m : all.messages) {
    if (m.kind != kind || m.phase != phase) continue;
    sum.calls += m.count;
    sum.bytes += m.count * in_bytes(m.payload);
  }
  return sum;
}

// Embedding, 12 blocks and the head are gathered in each of two micro-batches, forward and
// backward; the head or the block that stays only forward.
TEST(EnginePasses, WhatStaysIsGatheredOnce) {
  const Program plain = lower(job_of("dp=2:zero3", 4, kNone));
  const Program stays = lower(job_of("dp=2:zero3", 4, kHeadStays));
  const Program block = lower(job_of("dp=2:zero3", 4, kBlockStays));
  const auto gathers = [](const Program& p, StepPhase phase) {
    return sum_of(p, InstructionKind::all_gather, phase).calls;
  };
  EXPECT_EQ(gathers(plain, StepPhase::forward), 2 * 14);
  EXPECT_EQ(gathers(plain, StepPhase::backward), 2 * 14);
  EXPECT_EQ(gathers(stays, StepPhase::forward), 2 * 14);
  EXPECT_EQ(gathers(stays, StepPhase::backward), 2 * 13);
  EXPECT_EQ(gathers(block, StepPhase::forward), 2 * 14);
  EXPECT_EQ(gathers(block, StepPhase::backward), 2 * 13);
}

// A block of gpt2 has two norms (768 weights and biases each) and biases of 2304, 768, 3072 and 768
// elements below the limit; the last norm is the head's. They are gathered in bf16 after the update
// alone.
TEST(EnginePasses, SmallTensorsAreGatheredOnceAfterTheUpdate) {
  const Program plain = lower(job_of("dp=2:zero3", 4, kNone));
  const Program whole = lower(job_of("dp=2:zero3", 4, kSmallWhole));
  const std::int64_t small = 2 * (12 * (4 * 768 + 2304 + 768 + 3072 + 768) + 2 * 768);
  for (const StepPhase phase : {StepPhase::forward, StepPhase::backward}) {
    EXPECT_EQ(sum_of(plain, InstructionKind::all_gather, phase).bytes -
                  sum_of(whole, InstructionKind::all_gather, phase).bytes,
              2 * small);
  }
  EXPECT_EQ(sum_of(plain, InstructionKind::all_gather, StepPhase::update), Sum());
  EXPECT_EQ(sum_of(whole, InstructionKind::all_gather, StepPhase::update).bytes, small);
}

// Two micro-batches scatter their gradients each, or their sum once.
TEST(EnginePasses, GradientsAreReducedOnce) {
  const Program plain = lower(job_of("dp=2:zero2", 4, kNone));
  const Program once = lower(job_of("dp=2:zero2", 4, kReducedOnce));
  const auto scatters = [](const Program& p, StepPhase phase) {
    return sum_of(p, InstructionKind::reduce_scatter, phase);
  };
  const Sum each = scatters(plain, StepPhase::backward);
  EXPECT_GT(each.calls, 0);
  EXPECT_EQ(scatters(plain, StepPhase::reduce), Sum());
  EXPECT_EQ(scatters(once, StepPhase::backward), Sum());
  EXPECT_EQ(scatters(once, StepPhase::reduce).bytes * 2, each.bytes);
}

// With one micro-batch there is nothing to put off.
TEST(EnginePasses, OneMicroBatchIsReducedAsEver) {
  EXPECT_EQ(lower(job_of("dp=2:zero2", 2, kReducedOnce)), lower(job_of("dp=2:zero2", 2, kNone)));
}

// On each of two stages a unit is gathered once in place of twice for each of four micro-batches.
TEST(EnginePasses, PipelinesHoldWhatTheyGather) {
  const Program plain = lower(job_of("pp=2:1f1b dp=2:zero3", 8, kNone));
  const Program held = lower(job_of("pp=2:1f1b dp=2:zero3", 8, kHeldOverPipeline));
  const auto bytes = [](const Program& p) {
    return sum_of(p, InstructionKind::all_gather, StepPhase::forward).bytes +
           sum_of(p, InstructionKind::all_gather, StepPhase::backward).bytes;
  };
  EXPECT_GT(bytes(held), 0);
  EXPECT_EQ(bytes(plain), 2 * 4 * bytes(held));
}

// Parts are summed over two replicas after each of two scatters, in place of once at the end.
TEST(EnginePasses, ReplicasAreSummedWithEachScatter) {
  const Program plain = lower(job_of("rep=2:ddp dp=2:zero3", 8, kNone));
  const Program each = lower(job_of("rep=2:ddp dp=2:zero3", 8, kReplicasEach));
  const Sum at_end = sum_of(plain, InstructionKind::all_reduce, StepPhase::reduce);
  EXPECT_GT(at_end.bytes, 0);
  EXPECT_EQ(sum_of(plain, InstructionKind::all_reduce, StepPhase::backward), Sum());
  EXPECT_EQ(sum_of(each, InstructionKind::all_reduce, StepPhase::backward).bytes, 2 * at_end.bytes);
}

TEST(EnginePasses, AreTheTrainingOfOneDevice) {
  for (const char* placement : {"dp=2:zero3", "dp=2:zero2 tp=2:tp", "rep=2:ddp dp=2:zero3",
                                "pp=2:1f1b dp=2:zero3", "rep=2:ddp dp=2:zero2 cp=2:gather"}) {
    for (const Facts facts : {kHeadStays, kBlockStays, kSmallWhole, kReducedOnce, kReducedOnceWide,
                              kHeldOverPipeline, kReplicasEach}) {
      const Program program = lower_small(job_of(placement, 8, facts));
      EXPECT_TRUE(check(program).equivalent) << placement;
      EXPECT_TRUE(verify(program).equal) << placement;
    }
  }
}

}  // namespace
}  // namespace placet::testing
