#include "derive/gathered_memory.h"

#include <gtest/gtest.h>

namespace placet {
namespace {

GatheredChunk chunk_of(std::int64_t prefetch, bool in_flight,
                       const std::vector<GatheredUnit>& units) {
  GatheredChunk chunk(prefetch, in_flight);
  for (const GatheredUnit& unit : units) chunk.add(unit);
  return chunk;
}

// Units of 1, 10 and 100 bytes: each sum says which of them are there.
const std::vector<GatheredUnit> kFreed = {{.whole = 1}, {.whole = 10}, {.whole = 100}};
const std::vector<GatheredUnit> kKept = {{.whole = 1, .keep = Keep::backward},
                                         {.whole = 10, .keep = Keep::backward},
                                         {.whole = 100, .keep = Keep::backward}};

TEST(GatheredMemory, OneUnitIsWholeAtATime) {
  const GatheredChunk chunk = chunk_of(0, false, kFreed);
  EXPECT_EQ(chunk.in_forward(1).whole, 10);
  EXPECT_EQ(chunk.in_backward(1).whole, 10);
}

TEST(GatheredMemory, UnitsAheadAreTheNextOnesInForwardAndTheOnesBeforeInBackward) {
  const GatheredChunk chunk = chunk_of(1, false, kFreed);
  EXPECT_EQ(chunk.in_forward(1).whole, 110);
  EXPECT_EQ(chunk.in_forward(2).whole, 100);
  EXPECT_EQ(chunk.in_backward(1).whole, 11);
  EXPECT_EQ(chunk.in_backward(0).whole, 1);
  EXPECT_EQ(chunk_of(INT64_MAX, false, kFreed).in_forward(0).whole, 111);
}

TEST(GatheredMemory, KeptUnitsWaitForTheirBackward) {
  const GatheredChunk chunk = chunk_of(0, false, kKept);
  EXPECT_EQ(chunk.in_forward(2).whole, 111);
  EXPECT_EQ(chunk.in_backward(1).whole, 11);
}

TEST(GatheredMemory, WithOtherMicroBatchesInFlightAllKeptUnitsAreThere) {
  const GatheredChunk chunk = chunk_of(0, true, kKept);
  EXPECT_EQ(chunk.in_forward(0).whole, 111);
  EXPECT_EQ(chunk.in_backward(0).whole, 111);
}

TEST(GatheredMemory, UnitsKeptOverTheStepAreThereBeforeAndAfter) {
  const GatheredChunk chunk =
      chunk_of(0, false, {{.whole = 1}, {.whole = 10, .keep = Keep::step}, {.whole = 100}});
  EXPECT_EQ(chunk.in_forward(0).whole, 11);
  EXPECT_EQ(chunk.in_forward(2).whole, 110);
  EXPECT_EQ(chunk.in_backward(0).whole, 11);
}

// The running unit's part is made before its whole is freed, and read when it is whole again.
TEST(GatheredMemory, PartsWaitForTheirBackward) {
  const GatheredChunk chunk =
      chunk_of(0, false, {{.whole = 2, .parts = 1}, {.whole = 20, .parts = 10}, {.whole = 200}});
  EXPECT_EQ(chunk.in_forward(0).parts, 1);
  EXPECT_EQ(chunk.in_forward(1).parts, 11);
  EXPECT_EQ(chunk.in_backward(2).parts, 11);
  EXPECT_EQ(chunk.in_backward(0).parts, 1);
  EXPECT_EQ(chunk.in_backward(0).whole, 2);
}

// A unit that stays whole needs no part; one that stays over the step none of either kind.
TEST(GatheredMemory, WhatStaysWholeHasNoParts) {
  const GatheredUnit backward = {.whole = 4, .keep = Keep::backward, .parts = 2, .parts_step = 1};
  const GatheredUnit step = {.whole = 4, .keep = Keep::step, .parts = 2, .parts_step = 1};
  EXPECT_EQ(chunk_of(0, false, {backward}).in_forward(0).parts, 1);
  EXPECT_EQ(chunk_of(0, false, {step}).in_forward(0).parts, 0);
}

TEST(GatheredMemory, ChunksThatDoNotRunKeepWhatWaits) {
  EXPECT_EQ(kept_of({.whole = 4, .keep = Keep::backward, .parts_step = 1}, true).total(), 5);
  EXPECT_EQ(kept_of({.whole = 4, .keep = Keep::backward, .parts_step = 1}, false).total(), 1);
  EXPECT_EQ(kept_of({.whole = 4, .keep = Keep::step}, false).total(), 4);
  EXPECT_EQ(kept_of({.whole = 4, .parts = 2}, true).total(), 2);
}

}  // namespace
}  // namespace placet
