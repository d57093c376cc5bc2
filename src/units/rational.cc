#include "units/rational.h"

#include <cstdlib>
#include <limits>
#include <ostream>
#include <string>

#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

__extension__ typedef __int128 Wide;

Wide magnitude(Wide value) { return value < 0 ? -value : value; }

Wide greatest_common_divisor(Wide a, Wide b) {
  a = magnitude(a);
  b = magnitude(b);
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

std::int64_t narrow(Wide value) {
  if (value > std::numeric_limits<std::int64_t>::max() ||
      value < std::numeric_limits<std::int64_t>::min()) {
    throw_overflow("fraction", "term");
  }
  return static_cast<std::int64_t>(value);
}

struct Terms {
  std::int64_t numerator;
  std::int64_t denominator;
};

// Products of two 64-bit numbers, and the sum of two such, stay below 2^127: nothing here wraps.
Terms lowest_terms(Wide numerator, Wide denominator) {
  ensure(denominator != 0, "no fraction has the denominator zero");
  Wide divisor = greatest_common_divisor(numerator, denominator);
  if (denominator < 0) divisor = -divisor;
  return {narrow(numerator / divisor), narrow(denominator / divisor)};
}

Rational from_wide(Wide numerator, Wide denominator) {
  const Terms terms = lowest_terms(numerator, denominator);
  return Rational(terms.numerator, terms.denominator);
}

}  // namespace

Rational::Rational(std::int64_t numerator, std::int64_t denominator) {
  const Terms terms = lowest_terms(numerator, denominator);
  numerator_ = terms.numerator;
  denominator_ = terms.denominator;
}

std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
  return Wide{a.numerator_} * b.denominator_ <=> Wide{b.numerator_} * a.denominator_;
}

Rational operator+(const Rational& a, const Rational& b) {
  return from_wide(Wide{a.numerator_} * b.denominator_ + Wide{b.numerator_} * a.denominator_,
                   Wide{a.denominator_} * b.denominator_);
}

Rational operator-(const Rational& a, const Rational& b) {
  return from_wide(Wide{a.numerator_} * b.denominator_ - Wide{b.numerator_} * a.denominator_,
                   Wide{a.denominator_} * b.denominator_);
}

Rational operator*(const Rational& a, const Rational& b) {
  if (a == 1) return b;
  if (b == 1) return a;
  return from_wide(Wide{a.numerator_} * b.numerator_, Wide{a.denominator_} * b.denominator_);
}

Rational operator/(const Rational& a, const Rational& b) {
  return from_wide(Wide{a.numerator_} * b.denominator_, Wide{a.denominator_} * b.numerator_);
}

double in_double(const Rational& fraction) {
  return static_cast<double>(fraction.numerator()) / static_cast<double>(fraction.denominator());
}

std::string to_string(const Rational& fraction) {
  std::string numerator = std::to_string(fraction.numerator());
  if (fraction.is_whole()) return numerator;
  return numerator + "/" + std::to_string(fraction.denominator());
}

std::string text_of_part(std::int64_t amount, const Rational& fraction) {
  const Wide numerator = Wide{amount} * fraction.numerator();
  const Wide divisor = greatest_common_divisor(numerator, fraction.denominator());
  if (numerator == 0) return "0";
  std::string digits;
  for (Wide rest = magnitude(numerator / divisor); rest != 0; rest /= 10) {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
  }
  const Wide denominator = fraction.denominator() / divisor;
  if (numerator < 0) digits.insert(digits.begin(), '-');
  if (denominator == 1) return digits;
  return digits + "/" + std::to_string(static_cast<std::int64_t>(denominator));
}

std::ostream& operator<<(std::ostream& out, const Rational& fraction) {
  return out << to_string(fraction);
}

Rational exact_ratio(Bytes a, Bytes b) { return Rational(in_bytes(a), in_bytes(b)); }

Rational exact_ratio(Count a, Count b) { return Rational(in_ones(a), in_ones(b)); }

Bytes exact_part(Bytes amount, const Rational& fraction) {
  const Rational part = Rational(in_bytes(amount)) * fraction;
  ensure(part.is_whole(), "this part of an amount is a whole number of bytes");
  return bytes(part.numerator());
}

Bytes part_rounded_up(Bytes amount, const Rational& fraction) {
  const Wide numerator = Wide{in_bytes(amount)} * fraction.numerator();
  const Wide quotient = numerator / fraction.denominator();  // rounds towards zero
  const bool rounds_up = numerator > 0 && numerator % fraction.denominator() != 0;
  return bytes(narrow(quotient + (rounds_up ? 1 : 0)));
}

}  // namespace placet
