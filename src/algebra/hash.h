// Functions of which nothing is known but that equal arguments give equal values: keyed hashes from
// F_p to F_p (docs/theory.md §6.7). A hash under a key drawn anew is as good as a random function,
// so two expressions that differ in an argument differ in the value, but for a chance of about 1/p.
#pragma once

#include <cstdint>

#include "algebra/field.h"
#include "ranks/numbers.h"

namespace placet::algebra {

using ranks::mixed;
using ranks::number_of;

/// Hashes of sequences of numbers: h = start(name), h = step(h, x) for each x, then element(h).
class KeyedHash {
 public:
  explicit constexpr KeyedHash(std::uint64_t seed)
      : first_(mixed(seed + 0x9e3779b97f4a7c15U)), second_(mixed(first_ ^ 0xd1b54a32d192ed03U)) {}

  constexpr std::uint64_t start(std::uint64_t name) const { return mixed(name ^ first_) + second_; }
  constexpr std::uint64_t step(std::uint64_t h, std::uint64_t x) const {
    return mixed((h ^ x) + second_) + first_;
  }
  /// The value in F_p: each has 8 or 9 of the 2^64 hashes.
  static constexpr Element element(std::uint64_t h) {
    return static_cast<Element>((Wide{mixed(h)} * kPrime) >> 64U);
  }
  /// The value in F_q, an exponent.
  static constexpr Element exponent(std::uint64_t h) {
    return static_cast<Element>((Wide{mixed(h)} * kExponents) >> 64U);
  }

 private:
  std::uint64_t first_;
  std::uint64_t second_;
};

}  // namespace placet::algebra
