#include "derive/fit.h"

#include <gtest/gtest.h>

#include "derive/traffic.h"

namespace placet {
namespace {

MemoryClass class_needing(std::int64_t reserved, std::int64_t outside) {
  MemoryClass memory;
  memory.capacity = bytes(100);
  memory.reserved = bytes(reserved);
  memory.outside = bytes(outside);
  return memory;
}

// Of 100 bytes, 5 have to be left where a job is said to fit.
TEST(Fit, HasThreeGrades) {
  EXPECT_EQ(grade_of(class_needing(90, 5)), FitGrade::fits);
  EXPECT_EQ(grade_of(class_needing(90, 6)), FitGrade::tight);
  EXPECT_EQ(grade_of(class_needing(90, 10)), FitGrade::tight);
  EXPECT_EQ(grade_of(class_needing(91, 10)), FitGrade::too_large);
  MemoryClass cached = class_needing(50, 0);
  cached.gives_back = true;
  EXPECT_EQ(grade_of(cached), FitGrade::tight);
  cached.capacity = Bytes();  // not known
  EXPECT_EQ(grade_of(cached), FitGrade::fits);
}

// Whatever a replay says, what is alive is reserved, or outside.
TEST(Fit, ReservedIsNeverBelowWhatIsAlive) {
  MemoryClass memory;
  memory.peak = bytes(70);
  memory.outside = bytes(10);
  note_reserved({.reserved = bytes(50), .outside = bytes(10)}, memory);
  EXPECT_EQ(memory.reserved, bytes(60));
  note_reserved({.reserved = bytes(80), .outside = bytes(10), .gives_back = true}, memory);
  EXPECT_EQ(memory.reserved, bytes(80));
  EXPECT_EQ(needed(memory), bytes(90));
  EXPECT_TRUE(memory.gives_back);
}

EngineMemory own_term(const char* what, Bytes size, InstantSet instants, bool in_reserved) {
  EngineMemory term{.what = what, .instants = instants, .in_reserved = in_reserved};
  term.category = instants == kEveryInstant ? MemoryCategory::overhead : MemoryCategory::transient;
  term.bytes.factor = Rational(in_bytes(size));
  return term;
}

/// A small model on a device of `memory`, under an engine that caches blocks.
Job job_on(Bytes memory) {
  Job job = written_job(build_model(wide_architecture(4)), "dp=4:ddp", 2048, 16);
  job.profile.caches_blocks = true;
  // One buffer larger than any that the backward pass leaves in the cache.
  job.profile.memory.push_back(
      own_term("flat buffer", gibibytes(3), bit_of(Instant::update), true));
  job.cluster = Cluster{.name = "test",
                        .groups = {{.device = {.memory = memory},
                                    .count = 4,
                                    .per_host = 4,
                                    .host_memory = gigabytes(100),
                                    .levels = {{.devices = 4}}}}};
  return job;
}

// The same job on ever smaller devices: it fits; what the allocator caches has to go for the last
// buffer; the buffer itself is too much.
TEST(Fit, AnAllocatorThatHasToGiveBlocksBackIsTight) {
  const Derivation roomy = derive(job_on(gibibytes(100)));
  EXPECT_EQ(roomy.fit, FitGrade::fits);
  EXPECT_TRUE(roomy.memory[0].replayed);
  const Bytes reserved = roomy.memory[0].reserved;
  EXPECT_GT(reserved, roomy.peak) << "blocks that stay cached";

  const Derivation tight = derive(job_on(reserved - mebibytes(2)));
  EXPECT_EQ(tight.fit, FitGrade::tight);
  EXPECT_TRUE(tight.memory[0].gives_back);
  EXPECT_LT(tight.memory[0].reserved, reserved);
  EXPECT_EQ(tight.peak, roomy.peak);
  ASSERT_FALSE(tight.findings.empty());
  EXPECT_EQ(tight.findings.back().rule, "tight-memory");
  EXPECT_EQ(tight.findings.back().severity, Severity::warning);

  EXPECT_EQ(derive(job_on(gibibytes(3))).fit, FitGrade::too_large);
}

// 1 GiB of context is no block of the allocator, and is needed all the same.
TEST(Fit, WhatLiesOutsideCounts) {
  Job job = job_on(gibibytes(100));
  const MemoryClass before = derive(job).memory[0];
  job.profile.memory.push_back(own_term("context", gibibytes(1), kEveryInstant, false));
  const MemoryClass after = derive(job).memory[0];
  EXPECT_EQ(after.reserved, before.reserved);
  EXPECT_EQ(after.outside, gibibytes(1));
  EXPECT_EQ(needed(after), needed(before) + gibibytes(1));
  EXPECT_EQ(after.peak, before.peak + gibibytes(1));
}

// Stages of equal units: the first holds most, and decides; the last has other units.
TEST(Fit, StagesThatDecideAreReplayed) {
  Job job = job_on(gibibytes(100));
  job.placement = parse_placement("pp=4:1f1b", strategies().vocabulary);
  job.schedule = schedule_of(strategies(), job.placement);
  const Prepared prepared = prepare(job);
  Derivation out = derive(job, prepared);
  ASSERT_EQ(out.memory.size(), 4U);
  EXPECT_TRUE(out.memory[0].replayed);  // embedding and a block
  EXPECT_TRUE(out.memory[1].replayed);  // a block, and more micro-batches than stage 2
  EXPECT_FALSE(out.memory[2].replayed);
  EXPECT_TRUE(out.memory[3].replayed);  // a block and the head
  reserve_shown(job, prepared, ShownClasses::all, out);
  EXPECT_TRUE(out.memory[2].replayed);
  EXPECT_LE(out.memory[2].reserved, out.memory[1].reserved);
}

}  // namespace
}  // namespace placet
