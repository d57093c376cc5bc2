// Arithmetic in the prime field F_p in which whole steps of training are run (docs/theory.md §6.7).
//
// p = 2^61 - 3153 is a safe prime: q = (p - 1) / 2 is prime too, and g = 4 generates the squares of
// F_p, a group of q elements. So exp(x) = g^x takes sums of exponents modulo q to products modulo
// p, which is all that softmax needs of the exponential.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "units/rational.h"

namespace placet::algebra {

__extension__ typedef unsigned __int128 Wide;

/// An element of F_p by its representative 0 .. p - 1, or of F_q likewise.
using Element = std::uint64_t;

inline constexpr Element kPrime = 2305843009213690799U;
inline constexpr Element kExponents = 1152921504606845399U;  // q = (p - 1) / 2
inline constexpr Element kGenerator = 4;                     // of the group of q squares
inline constexpr Element kFold = (Element{1} << 61U) - kPrime;

/// How many products of two elements add up in 128 bits.
inline constexpr std::size_t kMostProducts = 63;

/// x mod p for any x: 2^61 = 3153 in F_p.
constexpr Element reduce(Wide x) {
  constexpr Wide kMask = (Wide{1} << 61U) - 1;
  const Wide once = (x & kMask) + (x >> 61U) * kFold;  // < 2^80
  const auto twice = static_cast<Element>((once & kMask) + (once >> 61U) * kFold);
  return twice >= kPrime ? twice - kPrime : twice;
}

constexpr Element add(Element a, Element b) {
  const Element sum = a + b;
  return sum >= kPrime ? sum - kPrime : sum;
}
constexpr Element subtract(Element a, Element b) { return a >= b ? a - b : a + kPrime - b; }
constexpr Element multiply(Element a, Element b) { return reduce(Wide{a} * b); }

/// The order in which the largest of several is meant: representatives above p / 2 are negative, so
/// that zero stands in the middle as among the reals, and kLeast is below all others.
inline constexpr Element kLeast = (kPrime + 1) / 2;
constexpr Element larger(Element a, Element b) {
  const Element above = a >= kLeast ? a - kLeast : a + (kPrime - kLeast);
  const Element below = b >= kLeast ? b - kLeast : b + (kPrime - kLeast);
  return above >= below ? a : b;
}

/// a^n.
Element power(Element a, std::uint64_t n);

/// 1 / a; a is not zero.
Element inverse(Element a);

/// The inverses of all of them, by one division in all. False, and nothing changed, if one is zero.
bool invert(std::vector<Element>& elements);

/// A fraction as an element. Throws InputError where numerator or denominator is a multiple of p,
/// which would be taken for zero.
Element element_of(const Rational& fraction);

/// g^n for an exponent below q, from a table: eight products.
Element exponential(Element n);

}  // namespace placet::algebra
