// Random linear sketches: a row of numbers as one, so that sums of rows have the sums of their
// sketches (docs/theory.md §6.11).
//
// An entry with label k has the weight a^k, where a is drawn once: of exact numbers in F_p,
// p = 2^61 - 1. Two rows that differ have the same sketch for at most k of the p choices of a, k
// the largest label. Of floating numbers the weights are random signs.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "execute/number.h"

namespace placet::execute {

/// Entries whose labels follow each other.
struct LabelRun {
  std::int64_t label = 0;
  std::int64_t length = 0;
  std::uint64_t weight = 1;  // of the first label

  friend bool operator==(const LabelRun&, const LabelRun&) = default;
};

/// What is known of a row: its sketch in the field (of exact numbers, of the bits of others), and
/// of floating numbers with random signs their sum and the sum of their squares.
struct Sketch {
  std::uint64_t field = 0;
  double sum = 0;
  double squares = 0;

  friend bool operator==(const Sketch&, const Sketch&) = default;
};

/// Weights by label, from one drawn number.
class SketchWeights {
 public:
  static constexpr std::size_t kLanes = 4;  // entries that are worked on beside each other

  explicit SketchWeights(std::uint64_t seed);
  std::uint64_t of(std::int64_t label) const;
  /// The runs with the weights of their first labels.
  void weigh(std::vector<LabelRun>& runs) const;

  /// The sketch of entries that stand one after the other, labelled by the runs.
  Sketch sketch(const Number* entries, const std::vector<LabelRun>& runs) const;
  Sketch sketch(const float* entries, const std::vector<LabelRun>& runs) const;
  Sketch sketch(const double* entries, const std::vector<LabelRun>& runs) const;

 private:
  std::array<std::uint64_t, kLanes + 1> powers_{};  // of a
  std::uint64_t signs_ = 0;
};

/// The sketch of the sum of two rows.
void add(Sketch& to, const Sketch& more);

inline constexpr int kFieldBits = 61;
inline constexpr std::uint64_t kFieldPrime = (std::uint64_t{1} << kFieldBits) - 1;

/// A number below 2^63 in the field.
inline std::uint64_t reduced(std::uint64_t x) {
  x = (x & kFieldPrime) + (x >> kFieldBits);
  return x >= kFieldPrime ? x - kFieldPrime : x;
}

/// Sums and products in F_p.
inline std::uint64_t field_sum(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t sum = a + b;
  return sum >= kFieldPrime ? sum - kFieldPrime : sum;
}
inline std::uint64_t field_product(std::uint64_t a, std::uint64_t b) {
  __extension__ typedef unsigned __int128 UnsignedWide;
  const UnsignedWide product = static_cast<UnsignedWide>(a) * b;
  return reduced((static_cast<std::uint64_t>(product) & kFieldPrime) +
                 static_cast<std::uint64_t>(product >> kFieldBits));
}

/// The whole number that an exact number is of 2^-320, divided by 2^240, in the field. Since 2^61
/// is 1 there, 2^-60 is 2, and part k has the weight 2^(k + 1).
inline std::uint64_t field_of(const Number& x) {
  const auto low = static_cast<std::uint64_t>(x.high) & kFieldPrime;
  const auto middle = static_cast<std::uint64_t>(x.high >> kFieldBits) & kFieldPrime;
  const auto top = static_cast<std::int64_t>(x.high >> (2 * kFieldBits));  // from -32 to 31
  std::uint64_t sum =
      reduced(low + middle + static_cast<std::uint64_t>(top + 64)) + (kFieldPrime - 64);
  if (!x.is_short()) {
    sum = reduced(sum);
    for (std::size_t k = 0; k < kParts; ++k) {
      sum += field_product(static_cast<std::uint64_t>(x.parts[k]), std::uint64_t{1} << (k + 1));
      sum = reduced(sum);
    }
  }
  return reduced(sum);
}

}  // namespace placet::execute
