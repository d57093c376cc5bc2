#include "profile/lengths.h"

#include <algorithm>

#include "units/checked.h"
#include "units/shares.h"

namespace placet {

std::int64_t tokens_at_once(std::int64_t longest, std::int64_t devices) {
  return largest_share(longest, devices);
}

LengthPlace place_of_length(std::int64_t tokens, std::int64_t at_once) {
  if (tokens > at_once) return {.devices = largest_share(tokens, at_once)};
  return {.samples = at_once / tokens};
}

Rational slots_of_length(std::int64_t tokens, std::int64_t at_once) {
  const LengthPlace place = place_of_length(tokens, at_once);
  return {place.devices, place.samples};
}

Rational mean_slots(const std::vector<SampleLength>& lengths, std::int64_t at_once) {
  Rational sum;
  for (const SampleLength& length : lengths) {
    sum += length.share * slots_of_length(length.tokens, at_once);
  }
  return sum;
}

std::int64_t samples_of_longest(const std::vector<SampleLength>& lengths, std::int64_t samples,
                                std::int64_t devices, std::int64_t per_round) {
  const std::int64_t longest = std::ranges::max_element(lengths, {}, &SampleLength::tokens)->tokens;
  const std::int64_t at_once = tokens_at_once(longest, devices);
  const Rational whole = Rational(samples) * mean_slots(lengths, at_once) / Rational(devices);
  const std::int64_t rounded = in_bytes(part_rounded_up(bytes(1), whole));
  return checked_multiply(largest_share(rounded, per_round), per_round, "samples");
}

}  // namespace placet
