// Samples of several lengths (docs/theory.md §3.9): how many devices of a sequence cut a sample is
// spread over, how many short ones a device takes at once, and how many rounds that makes.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/training.h"
#include "units/rational.h"

namespace placet {

/// Tokens that a device takes at once where samples of `longest` tokens are divided over `devices`:
/// ceil(longest / devices).
std::int64_t tokens_at_once(std::int64_t longest, std::int64_t devices);

/// Where samples of one length go. A sample that fits into a device's tokens stays on it, together
/// with as many others of its length as fit; a longer one takes as many devices as it needs.
struct LengthPlace {
  std::int64_t devices = 1;  // that share a sample
  std::int64_t samples = 1;  // that a device takes at once; 1 where several share one
};
LengthPlace place_of_length(std::int64_t tokens, std::int64_t at_once);

/// Devices that a sample keeps busy for one round: devices / samples. Case: devices take 8192
/// tokens at once: of 4096 tokens 1/2, of 10000 2.
Rational slots_of_length(std::int64_t tokens, std::int64_t at_once);

/// The mean of that over the lengths.
Rational mean_slots(const std::vector<SampleLength>& lengths, std::int64_t at_once);

/// Samples of the longest length that keep `devices` devices of a sequence cut busy for as many
/// rounds as `samples` samples of these lengths, rounded up to whole rounds of `per_round` of the
/// longest. Case: 8 samples, half of 4096 tokens and half of 16384, over 4 devices with 4096 tokens
/// each: 4 x 1 + 4 x 4 = 20 devices' rounds, as 5 of the longest.
std::int64_t samples_of_longest(const std::vector<SampleLength>& lengths, std::int64_t samples,
                                std::int64_t devices, std::int64_t per_round);

}  // namespace placet
