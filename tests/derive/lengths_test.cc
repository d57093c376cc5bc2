#include "derive/lengths.h"

#include <gtest/gtest.h>

#include "derive/traffic.h"

namespace placet {
namespace {

// Half of 16 samples of 8 tokens, half of 32, over a ring of 4: 8 tokens on each device at once.
Job mixed_job(const std::string& placement) {
  Job job = written_job(wide(1), placement, 32, 10);
  job.batch.lengths = {{.tokens = 8, .share = Rational(1, 2)},
                       {.tokens = 32, .share = Rational(1, 2)}};
  job.batch.samples = 16;
  return job;
}

// A short sample stays on one device, a long one takes all four: of 5 rounds of a device the short
// ones take 1. Both hold 8 tokens. A short one has 8 x 8 pairs on its device, a long one 8 x 32.
TEST(Lengths, DevicesTakeAsManyTokensAtOnce) {
  const Job job = mixed_job("cp=4:hdp");
  const LengthSpread spread = *spread_of_lengths(job, prepare(job));
  EXPECT_EQ(spread.at_once, 8);
  ASSERT_EQ(spread.uses.size(), 2);
  EXPECT_EQ(spread.uses[0].devices, 1);
  EXPECT_EQ(spread.uses[1].devices, 4);
  EXPECT_EQ(spread.uses[0].rounds, Rational(1, 5));
  EXPECT_EQ(spread.uses[1].rounds, Rational(4, 5));
  EXPECT_EQ(spread.uses[0].pairs, Rational(64));
  EXPECT_EQ(spread.uses[1].pairs, Rational(256));
  EXPECT_EQ(spread.mean_held, Rational(8));
  EXPECT_EQ(spread.held_imbalance, Rational(1));
  // (64 + 4 x 256) / 5 = 1088 / 5 in the mean.
  EXPECT_EQ(spread.pair_imbalance, Rational(256 * 5, 1088));
}

// Round the ring go keys and values of 8 tokens, 2 heads of 4, of 2 bytes: 256 bytes in 3 rounds
// forward; backward they and their gradients, twice as much. 10 micro-batches, as of the longest.
// The short ones send nothing, and take a fifth of the rounds.
TEST(Lengths, ShortSamplesSendNothing) {
  const Job job = mixed_job("cp=4:hdp");
  const LengthSpread spread = *spread_of_lengths(job, prepare(job));
  EXPECT_EQ(spread.uses[0].exchanged, bytes(0));
  EXPECT_EQ(spread.uses[1].exchanged, bytes(10 * 3 * 3 * 256));
  EXPECT_EQ(spread.most_exchanged, bytes(23040));
  EXPECT_EQ(spread.mean_exchanged, bytes(23040 * 4 / 5));
}

// Without a cut of the sequence short samples are packed: four of 8 tokens beside one of 32.
TEST(Lengths, ShortSamplesArePackedWhereNothingCutsTheSequence) {
  const Job job = mixed_job("dp=2:zero1");
  const LengthSpread spread = *spread_of_lengths(job, prepare(job));
  EXPECT_EQ(spread.at_once, 32);
  EXPECT_EQ(spread.uses[0].samples, 4);
  EXPECT_EQ(spread.uses[0].held, 32);
  EXPECT_EQ(spread.uses[0].rounds, Rational(1, 5));  // 1/4 of a round against 1
  EXPECT_EQ(spread.most_exchanged, bytes(0));
}

TEST(Lengths, OneLengthHasNoSpread) {
  const Job job = written_job(wide(1), "cp=4:ring+zero1", 32, 1);
  EXPECT_FALSE(spread_of_lengths(job, prepare(job)).has_value());
}

// A sample of 16 tokens takes two of the four devices: one round of 256 bytes forward, and twice as
// much backward. It is half a round of a device, so that it takes a third of all, and a longest one
// two: 7680 / 3 + 23040 x 2 / 3. Replicas along dp change nothing: 10 micro-batches are 20 samples.
TEST(Lengths, ASampleGoesRoundTheDevicesThatShareIt) {
  for (const auto& [placement, samples] : {std::pair{"cp=4:hdp", 10}, {"dp=2:ddp cp=4:hdp", 20}}) {
    Job job = mixed_job(placement);
    job.batch.global = samples;
    job.batch.lengths[0].tokens = 16;
    const LengthSpread spread = *spread_of_lengths(job, prepare(job));
    EXPECT_EQ(spread.uses[0].devices, 2);
    EXPECT_EQ(spread.uses[0].exchanged, bytes(10 * 3 * 256)) << placement;
    EXPECT_EQ(spread.uses[1].exchanged, bytes(23040)) << placement;
    EXPECT_EQ(spread.mean_exchanged, bytes(17920)) << placement;
  }
}

}  // namespace
}  // namespace placet
