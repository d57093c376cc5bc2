// Samples of several lengths over the devices of a sequence cut (docs/theory.md §3.9): what a
// device holds and sends for attention while it works on each, and how far the heaviest is from the
// mean.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "derive/prepared.h"
#include "profile/job.h"
#include "units/quantity.h"
#include "units/rational.h"

namespace placet {

/// The work of a device with samples of one length, in one round: a micro-batch of one sample of
/// the longest.
struct LengthUse {
  std::int64_t tokens = 0;   // of a sample
  Rational share;            // of the samples
  std::int64_t devices = 1;  // that share a sample
  std::int64_t samples = 1;  // that a device takes at once
  Rational rounds;           // part of all devices' rounds
  std::int64_t held = 0;     // tokens on the fullest of its devices
  Rational pairs;            // of a query and a key, per device, causality not counted
  Bytes exchanged;           // sent for attention per device and step, all rounds of this length
};

struct LengthSpread {
  std::int64_t at_once = 0;  // tokens that a device takes at most
  std::int64_t samples = 0;  // per step, of these lengths
  std::vector<LengthUse> uses;
  Rational mean_held;       // tokens
  Rational held_imbalance;  // the most tokens over the mean
  Rational pair_imbalance;  // the most pairs over the mean: how long others wait in attention
  Bytes most_exchanged;     // by a device that always works on the heaviest length
  Bytes mean_exchanged;     // rounded up
};

/// None where the job has one length. REQUIRES: the placement means something.
///
/// Case: 4 devices, half of the samples of 4096 tokens and half of 16384, 4096 tokens at once: the
/// short ones take 1 of 5 rounds. Pairs: 4096 x 4096 and four times as many, of which the mean is
/// 1/5 + 4 x 4/5 = 17/5 of the first, so that the imbalance is 4 / (17/5) = 20/17.
std::optional<LengthSpread> spread_of_lengths(const Job& job, const Prepared& prepared);

}  // namespace placet
