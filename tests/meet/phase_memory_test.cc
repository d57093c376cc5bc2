// Moments counted by hand, of both derivations: the closed form's instants and the program's
// phases.
#include <gtest/gtest.h>

#include "derive/traffic.h"
#include "lower/lower.h"
#include "meet/meeting.h"
#include "program/walk.h"
#include "units/at.h"

namespace placet::testing {
namespace {

/// The small model with a vocabulary of 100: an embedding of 800 entries, blocks of 592 (q 64, k
/// and v 32, o 64, two norms of 8, three matrices of 128), a norm of 8 and an output matrix of 800.
Job small_job(int blocks, bool tied, const char* placement, std::int64_t samples) {
  Architecture architecture = small_architecture(blocks);
  architecture.embedding.vocabulary = 100;
  architecture.head.tied = tied;
  return engine_job("placet@1", build_model(architecture), placement, 1, samples);
}

/// Bytes at an instant of the closed form on a stage; 0: there is none.
std::int64_t derived_at(const Job& job, int stage, Instant instant) {
  const Derivation derivation = derive(job);
  for (const InstantBytes& own : derivation.memory.at(at(stage)).instants) {
    if (own.instant == instant) return in_bytes(own.bytes);
  }
  return 0;
}

/// Bytes in a phase of the program, on the first device of a class.
std::int64_t counted_in(const Job& job, int device_class, StepPhase phase) {
  const Program program = lower(job);
  const ProgramCoordinates first = first_of(program, program.classes.at(at(device_class)));
  const auto phases = phase_memory(program, device_class, first);
  return in_bytes(phases[static_cast<std::size_t>(phase)].bytes);
}

// Both devices host all units, the second one the head before the embedding. The shared matrix is
// updated with the embedding. 800 + 2 * 592 + 8 = 1,992 entries in fp32 with gradients and
// momentum, parameters in host memory: 2 * 7,968 bytes at rest, and 3,200 of the embedding on the
// device.
TEST(PhaseMemory, ASharedTensorIsUpdatedWithItsOwner) {
  Job job = small_job(2, true, "pp=2:dualpipe+layer(O,S,S,S)", 4);
  job.precision = {.name = "fp32",
                   .parameters = Dtype::fp32,
                   .compute = Dtype::fp32,
                   .gather = Dtype::fp32,
                   .gradients = Dtype::fp32,
                   .reduce = Dtype::fp32,
                   .master = std::nullopt};
  job.optimizer.states = {{.what = "momentum"}};
  for (const int stage : {0, 1}) {
    EXPECT_EQ(derived_at(job, stage, Instant::update), 19'136) << stage;
    EXPECT_EQ(counted_in(job, stage, StepPhase::update), 19'136) << stage;
  }
}

// 800 + 592 + 808 = 2,200 entries, with 12 bytes of optimizer state and 2 of gradients at rest; all
// gathered before the first micro-batch, in bf16, from copies of halves, unit by unit. Of the head
// 808 bytes of them are there beside what is whole; a token's activations are less.
TEST(PhaseMemory, WhatStaysOverTheStepIsGatheredUnitByUnit) {
  const Job job = small_job(1, false, "dp=2:batch(O,R,R,R)+keep-step", 2);
  const std::int64_t expected = 2'200 * (12 + 2) + 2'200 * 2 + 808;
  EXPECT_EQ(derived_at(job, 0, Instant::forward), expected);
  EXPECT_EQ(counted_in(job, 0, StepPhase::forward), expected);
}

}  // namespace
}  // namespace placet::testing
