#include "execute/number.h"

#include <bit>
#include <cmath>

namespace placet::execute {
namespace {

constexpr int kFactorBits = 60;  // behind the point, of a factor that is multiplied exactly

/// Takes a part of `low` that is 2^120 and more, or negative, over to `high`. False: out of range.
bool normalise(Number& a) {
  const Wide carry = a.low >> kLowBits;
  a.low -= carry << kLowBits;
  return !__builtin_add_overflow(a.high, carry, &a.high);
}

Wide size_of(Wide x) { return x < 0 ? -x : x; }

struct Factor {
  std::int64_t mantissa = 0;  // below 2^24
  int shift = 0;              // the factor is mantissa 2^(shift - kFactorBits)
};

/// From the bits of the number: 8 of the exponent, 23 behind the leading one.
Factor factor_of(double x) {
  constexpr int kBias = 150;  // the value is mantissa 2^(exponent - kBias)
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  const int exponent = static_cast<int>((bits >> 23U) & 0xffU);
  std::int64_t mantissa = (bits & 0x7fffffU) | 0x800000U;
  int shift = exponent - kBias + kFactorBits;
  if (shift < -30 || exponent == 0) return {};
  if (shift < 0) {
    mantissa = (mantissa + (std::int64_t{1} << (-shift - 1))) >> -shift;
    shift = 0;
  }
  return {(bits >> 31U) != 0 ? -mantissa : mantissa, shift};
}

/// sum += p 2^(shift - 140), p below 2^124.
bool add_shifted(Number& sum, Wide p, int shift) {
  if (shift >= kFactorBits) {
    const int up = shift - kFactorBits;
    if (size_of(p) >= Wide{1} << (126 - up)) return false;
    return !__builtin_add_overflow(sum.high, p * (Wide{1} << up), &sum.high);
  }
  const int down = kFactorBits - shift;
  const Wide whole = p >> down;
  sum.low += (p - whole * (Wide{1} << down)) * (Wide{1} << (kLowBits - down));
  return !__builtin_add_overflow(sum.high, whole, &sum.high) && normalise(sum);
}

/// sum += p 2^(shift - 200), p below 2^84.
bool add_low(Number& sum, Wide p, int shift) {
  const int kept = kLowBits - shift;
  const Wide whole = p >> kept;
  sum.low += (p - whole * (Wide{1} << kept)) * (Wide{1} << shift);
  return !__builtin_add_overflow(sum.high, whole, &sum.high) && normalise(sum);
}

}  // namespace

Number number_of_real(double x, bool& fits) {
  if (!(std::fabs(x) < kMostNumber)) {
    fits = false;
    return {};
  }
  constexpr double kScale = 0x1p80;
  constexpr double kWhole = 0x1.8p52;  // added and taken off, it rounds to a whole number
  const double scaled = x * kScale;
  if (std::fabs(scaled) < 0x1p51) return {static_cast<std::int64_t>((scaled + kWhole) - kWhole), 0};
  return {static_cast<Wide>(scaled), 0};
}

float rounded_long(const Number& a) {
  if (a.low == 0) return std::ldexp(static_cast<float>(a.high), -kHighBits);
  // All that is left out only says that the number is no tie.
  constexpr int kMore = 30;
  if (size_of(a.high) >= Wide{1} << 96) {
    return std::ldexp(static_cast<float>(a.high | 1), -kHighBits);
  }
  const Wide longer = a.high * (Wide{1} << kMore) + (a.low >> (kLowBits - kMore));
  return std::ldexp(static_cast<float>(longer | 1), -kHighBits - kMore);
}

bool Bins::collect(Number& sum) {
  bool fits = true;
  Wide all = 0;
  for (int lane = 0; lane < 4; ++lane) {
    fits = fits && std::fabs(first_[lane]) < kMostNumber;
    const auto first = fits ? static_cast<std::int64_t>(first_[lane]) : 0;
    all += Wide{first} * (Wide{1} << kHighBits) +
           Wide{static_cast<std::int64_t>(second_[lane] * 0x1p40)} * (Wide{1} << 40) +
           Wide{static_cast<std::int64_t>(third_[lane] * 0x1p80)};
  }
  first_ = second_ = third_ = Four{};
  return fits && !__builtin_add_overflow(sum.high, all, &sum.high);
}

bool add_exact_product(Number& sum, const Number& a, double factor) {
  const Factor f = factor_of(factor);
  if (f.mantissa == 0) return true;
  constexpr Wide kMostHigh = Wide{1} << 100;
  constexpr int kFine = kLowBits - kFactorBits;
  if (size_of(a.high) >= kMostHigh || f.shift > 82) return false;
  if (!add_shifted(sum, a.high * f.mantissa, f.shift)) return false;
  if (a.low == 0) return true;
  const Wide fine = a.low >> kFine;
  if ((fine << kFine) != a.low) return false;
  return add_low(sum, fine * f.mantissa, f.shift);
}

}  // namespace placet::execute
