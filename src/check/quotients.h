// Statements that divide: what is a factor of their operands is one of their result.
#pragma once

#include "program/kernel.h"
#include "units/rational.h"

namespace placet {

inline bool is_division(const Statement& s) { return s.function == "inv" || s.function == "ratio"; }

/// Whether a statement divides, entry by entry, and does nothing else but add that up.
inline bool is_quotient(const Statement& s) {
  const bool alone = s.combine == Combine::sum && s.whole.empty() && s.positions.empty();
  return alone && ((s.function == "inv" && s.operands.size() == 1) ||
                   (s.function == "ratio" && s.operands.size() == 2));
}

/// Whether a fraction of two such ones is one, and none is zero.
inline bool is_small(const Rational& factor) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const std::int64_t n = factor.numerator();
  return n != 0 && n < kMost && n > -kMost && factor.denominator() < kMost;
}

}  // namespace placet
