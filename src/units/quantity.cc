#include "units/quantity.h"

#include <array>
#include <charconv>
#include <cmath>
#include <ostream>
#include <string>

#include "units/error.h"

namespace placet {

void throw_overflow(std::string_view what, std::string_view operation) {
  throw OverflowError({.where = std::string(what),
                       .value = "",
                       .problem = "a " + std::string(operation) + " of this job is too large",
                       .allowed = "sizes whose totals stay below 2^63",
                       .nearest = ""});
}

Bytes round_up_to_bytes(double n) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63, the first double out of range
  const double whole = std::ceil(n);
  if (!(whole >= -kLimit && whole < kLimit)) throw_overflow(BytesUnit::kName, "number");
  return Bytes::of(static_cast<std::int64_t>(whole));
}

template <class Unit>
std::string to_string(Real<Unit> amount) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), amount.units()).ptr;
  return std::string(digits.data(), end) + " " + std::string(Unit::kName);
}

template <class Unit>
std::ostream& operator<<(std::ostream& out, Whole<Unit> amount) {
  return out << to_string(amount);
}

template <class Unit>
std::ostream& operator<<(std::ostream& out, Real<Unit> amount) {
  return out << to_string(amount);
}

template std::string to_string(Flops);
template std::string to_string(Seconds);
template std::string to_string(BytesPerSecond);
template std::string to_string(FlopsPerSecond);
template std::ostream& operator<<(std::ostream&, Bytes);
template std::ostream& operator<<(std::ostream&, Count);
template std::ostream& operator<<(std::ostream&, Flops);
template std::ostream& operator<<(std::ostream&, Seconds);
template std::ostream& operator<<(std::ostream&, BytesPerSecond);
template std::ostream& operator<<(std::ostream&, FlopsPerSecond);

}  // namespace placet
