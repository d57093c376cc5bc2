// Exact fractions, for statements that must hold exactly: "gathering parameters for each use sends
// 3/2 of what whole replicas send" is an equality of fractions, not of doubles.
#pragma once

#include <compare>
#include <cstdint>
#include <iosfwd>
#include <string>

#include "units/quantity.h"

namespace placet {

/// A fraction in lowest terms with a positive denominator, both 64 bits. Intermediate results are
/// 128 bits wide; a result whose lowest terms do not fit throws InputError, as checked.h does.
///
///   Rational(3, 8) + Rational(1, 8) == Rational(1, 2)
class Rational {
 public:
  constexpr Rational() = default;  // zero

  /// A whole number. Implicit, as every whole number is a fraction: 2 * Rational(1, 3).
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr Rational(std::int64_t whole) : numerator_(whole) {}

  /// numerator / denominator, in any terms and with any signs. The denominator must not be zero
  /// (InternalError).
  Rational(std::int64_t numerator, std::int64_t denominator);

  constexpr std::int64_t numerator() const { return numerator_; }
  constexpr std::int64_t denominator() const { return denominator_; }
  constexpr bool is_whole() const { return denominator_ == 1; }

  /// Lowest terms are unique, so equality is that of the parts.
  friend constexpr bool operator==(const Rational&, const Rational&) = default;
  friend std::strong_ordering operator<=>(const Rational& a, const Rational& b);

  friend Rational operator+(const Rational& a, const Rational& b);
  friend Rational operator-(const Rational& a, const Rational& b);
  friend Rational operator*(const Rational& a, const Rational& b);
  friend Rational operator/(const Rational& a, const Rational& b);  // b = 0 is an InternalError

  Rational& operator+=(const Rational& other) { return *this = *this + other; }

 private:
  std::int64_t numerator_ = 0;
  std::int64_t denominator_ = 1;
};

/// The nearest double.
double in_double(const Rational& fraction);

/// "3/2", or "3" where the fraction is whole.
std::string to_string(const Rational& fraction);
/// The same of amount * fraction, which may pass 2^63: up to 2^126.
std::string text_of_part(std::int64_t amount, const Rational& fraction);
std::ostream& operator<<(std::ostream& out, const Rational& fraction);

/// a / b exactly. b must not be zero (InternalError).
Rational exact_ratio(Bytes a, Bytes b);
Rational exact_ratio(Count a, Count b);

/// fraction * amount where that is whole; otherwise InternalError, as the caller claims it is.
///   exact_part(bytes(80), Rational(7, 8)) == bytes(70)
Bytes exact_part(Bytes amount, const Rational& fraction);

/// The least whole number of bytes not below fraction * amount: what a device needs that pads up.
///   part_rounded_up(bytes(10), Rational(1, 4)) == bytes(3)
Bytes part_rounded_up(Bytes amount, const Rational& fraction);

}  // namespace placet
