#include "derive/exchange_memory.h"

#include <gtest/gtest.h>

#include "derive/traffic.h"
#include "derive/unit_memory.h"

namespace placet {
namespace {

struct Exchanged {
  ExchangeBytes forward;
  ExchangeBytes backward;
  UnitMemory memory;
};

/// Of the attention of one block, 4 tokens on each device: keys and values of 1 head of 4 are 4 x 4
/// x 2 = 32 bytes each, queries and the output of 2 heads 64.
Exchanged exchanged(const std::string& placement, std::int64_t devices) {
  const Job job = written_job(build_model(small_architecture(2)), placement, 4 * devices, 1);
  const Prepared prepared = prepare(job);
  const Layout layout = lay_out(job, prepared);
  const LocalUnit& unit = layout.units[1];
  Exchanged out{.memory = unit_memory(layout, 1, true)};
  for (const Operator& op : job.model.kinds[static_cast<std::size_t>(unit.kind)].operators) {
    if (op.kind != OpKind::attention) continue;
    out.forward = exchange_bytes(layout, unit, op, Pass::forward);
    out.backward = exchange_bytes(layout, unit, op, Pass::backward);
  }
  return out;
}

// 16 tokens: 2 x 32 x 4 = 256 bytes; in backward as much again for the gradients.
TEST(ExchangeMemory, GatheringHoldsWholeKeysAndValues) {
  const Exchanged block = exchanged("cp=4:gather", 4);
  EXPECT_EQ(block.forward.gathered, 256);
  EXPECT_EQ(block.forward.total(), 256);
  EXPECT_EQ(block.backward.gathered, 256);
  EXPECT_EQ(block.backward.sums, 256);
  EXPECT_EQ(block.backward.total(), 512);
}

// Two pieces of 64 bytes, of keys, values and in backward of their gradients; with one other device
// there is one.
TEST(ExchangeMemory, ARingHoldsThePieceItWorksOnAndTheNext) {
  const Exchanged block = exchanged("cp=4:ring", 4);
  EXPECT_EQ(block.forward.pieces, 128);
  EXPECT_EQ(block.forward.total(), 128);
  EXPECT_EQ(block.backward.pieces, 256);
  EXPECT_EQ(block.backward.total(), 256);
  EXPECT_EQ(exchanged("cp=2:ring", 2).forward.total(), 64);
}

// One kv head over 2 devices stands on both: keys and values are kept twice as large, 2 x 32 bytes
// more than what half the tokens' would be. The core's result, 64 bytes, is kept by heads and by
// tokens.
TEST(ExchangeMemory, SharedHeadsStandOnEachOfTheirDevices) {
  EXPECT_EQ(exchanged("cp=2:heads", 2).memory.kept - exchanged("cp=2:ring", 2).memory.kept,
            64 + 64);
}

// One tensor after the other, each in both layouts: the queries, or the output, 64 bytes.
TEST(ExchangeMemory, AnExchangeOfHeadsHoldsOneTensorTwice) {
  const Exchanged block = exchanged("cp=2:heads", 2);
  EXPECT_EQ(block.forward.message, 64);
  EXPECT_EQ(block.forward.total(), 64);
  EXPECT_EQ(block.backward.total(), 64);
}

// Two axes that gather are one group: 16 tokens are whole.
TEST(ExchangeMemory, AxesWithTheSameExchangeAreOneGroup) {
  EXPECT_EQ(exchanged("a=2:gather b=2:gather", 4).backward.total(), 512);
  EXPECT_EQ(exchanged("dp=4:ddp", 4).backward.total(), 0);
}

// 128 tokens: 2 x 32 x 32 = 2048 bytes are more than a block of 4 tokens keeps, and its fullest
// moment is that of attention, forward and backward.
TEST(ExchangeMemory, WhatIsGatheredIsAliveAtTheFullestMomentOfABlock) {
  const Exchanged block = exchanged("cp=32:gather", 32);
  EXPECT_EQ(block.memory.forward.exchange.gathered, 2048);
  EXPECT_EQ(block.memory.backward.exchange.gathered, 2048);
  EXPECT_EQ(block.memory.backward.exchange.sums, 2048);
}

}  // namespace
}  // namespace placet
