#include "execute/number.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace placet::execute {
namespace {

constexpr int kFactorBits = kPartBits;  // behind the point, of a factor that is multiplied exactly

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

/// x / 2^bits, rounded down; x is not negative.
Wide above(Wide x, int bits) { return bits < 127 ? x >> bits : Wide{0}; }

/// The parts of sign * rest 2^(-80 - down), rest < 2^down. False: there is no part for some of it.
bool add_parts(Number& sum, Wide rest, int down, std::int64_t sign) {
  for (std::size_t k = 0; rest != 0; ++k) {
    if (k == kParts) return false;
    down -= kPartBits;
    const Wide part = down > 0 ? above(rest, down) : rest << -down;
    rest = down > 0 ? rest - (part << std::min(down, 126)) : Wide{0};
    sum.parts[k] += sign * static_cast<std::int64_t>(part);
  }
  return normalise(sum);
}

/// sum += p 2^(-80 - down), p below 2^124 in size. False: out of range.
bool add_shifted(Number& sum, Wide p, int down) {
  const std::int64_t sign = p < 0 ? -1 : 1;
  Wide rest = size_of(p);
  if (down <= 0) {
    if (rest >= Wide{1} << std::max(126 + down, 0)) return rest == 0;
    return !__builtin_add_overflow(sum.high, p * (Wide{1} << -down), &sum.high);
  }
  const Wide whole = above(rest, down);
  if (down < 127) rest -= whole << down;
  return !__builtin_add_overflow(sum.high, sign * whole, &sum.high) &&
         (rest == 0 || add_parts(sum, rest, down, sign));
}

}  // namespace

bool normalise(Number& a) {
  std::int64_t carry = 0;
  for (std::size_t k = kParts; k-- > 0;) {
    a.parts[k] += carry;
    carry = a.parts[k] >> kPartBits;
    a.parts[k] &= kPartMask;
  }
  return !__builtin_add_overflow(a.high, Wide{carry}, &a.high);
}

Number negative(const Number& a) {
  Number out{.high = -a.high};
  for (std::size_t k = 0; k < kParts; ++k) out.parts[k] = -a.parts[k];
  normalise(out);
  return out;
}

Number number_of_real(double x, bool& fits) {
  if (!(std::fabs(x) < kMostNumber)) {
    fits = false;
    return {};
  }
  constexpr double kScale = 0x1p80;
  constexpr double kWhole = 0x1.8p52;  // added and taken off, it rounds to a whole number
  const double scaled = x * kScale;
  if (std::fabs(scaled) < 0x1p51)
    return {static_cast<std::int64_t>((scaled + kWhole) - kWhole), {}};
  return {static_cast<Wide>(std::nearbyint(scaled)), {}};
}

float rounded_long(const Number& a) {
  constexpr int kMore = 30;
  const bool rest = (a.parts[1] | a.parts[2] | a.parts[3]) != 0;
  // What is left out only says that the number is no tie.
  if (size_of(a.high) >= Wide{1} << 96) {
    const bool any = rest || a.parts[0] != 0;
    return std::ldexp(static_cast<float>(any ? a.high | 1 : a.high), -kHighBits);
  }
  const std::int64_t upper = a.parts[0] >> (kPartBits - kMore);
  const bool any = rest || (upper << (kPartBits - kMore)) != a.parts[0];
  const Wide longer = a.high * (Wide{1} << kMore) + upper;
  return std::ldexp(static_cast<float>(any ? longer | 1 : longer), -kHighBits - kMore);
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
  // Two halves, so that no product passes 124 bits.
  constexpr int kHalf = 60;
  int down = kPartBits - f.shift;
  const Wide upper = a.high >> kHalf;
  const Wide lower = a.high - upper * (Wide{1} << kHalf);
  if (!add_shifted(sum, upper * f.mantissa, down - kHalf)) return false;
  if (!add_shifted(sum, lower * f.mantissa, down)) return false;
  if (a.is_short()) return true;
  for (const std::int64_t part : a.parts) {
    down += kPartBits;
    if (!add_shifted(sum, Wide{part} * f.mantissa, down)) return false;
  }
  return true;
}

}  // namespace placet::execute
