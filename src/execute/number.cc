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

constexpr std::size_t kHighDigits = 3;  // of 60 bits, the last with the sign

/// A number in digits of 60 bits, the lowest first: its parts, then what is above them.
std::array<std::int64_t, kParts + kHighDigits> digits_of(const Number& a) {
  std::array<std::int64_t, kParts + kHighDigits> digits{};
  std::ranges::reverse_copy(a.parts, digits.begin());
  digits[kParts] = static_cast<std::int64_t>(a.high) & kPartMask;
  digits[kParts + 1] = static_cast<std::int64_t>(a.high >> kPartBits) & kPartMask;
  digits[kParts + 2] = static_cast<std::int64_t>(a.high >> (2 * kPartBits));
  return digits;
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

void ExactProducts::add_digit(std::size_t place, Wide product) {
  if (place > kDigits) {
    fits_ = fits_ && product == 0;
  } else if (place > 0) {
    digits_[place - 1] += product;
  } else {  // of the part below the last there is what fills whole units of that
    fits_ = fits_ && (product & kPartMask) == 0;
    digits_.front() += product >> kPartBits;
  }
}

void ExactProducts::add(const Number& a, double factor) {
  const Factor f = factor_of(factor);
  if (f.mantissa == 0) return;
  // The factor is low + high 2^60, times 2^(60 up - 60).
  const auto up = static_cast<std::size_t>(f.shift / kPartBits);
  const Wide shifted = size_of(f.mantissa) << (f.shift % kPartBits);
  const std::int64_t sign = f.mantissa < 0 ? -1 : 1;
  const auto low = static_cast<std::int64_t>(shifted & kPartMask) * sign;
  const auto high = static_cast<std::int64_t>(shifted >> kPartBits) * sign;
  const auto digits = digits_of(a);
  for (std::size_t k = a.is_short() ? kParts : 0; k < digits.size(); ++k) {
    if (digits[k] == 0) continue;
    add_digit(k + up, Wide{digits[k]} * low);
    add_digit(k + up + 1, Wide{digits[k]} * high);
  }
  if (++added_ == kMost) carry();
}

void ExactProducts::carry() {
  for (std::size_t k = 0; k + 1 < kDigits; ++k) {
    digits_[k + 1] += digits_[k] >> kPartBits;
    digits_[k] &= kPartMask;
  }
  constexpr Wide kTooLarge = Wide{1} << (kPartBits + 4);
  if (size_of(digits_.back()) >= kTooLarge) {
    fits_ = false;
    digits_.back() = 0;
  }
  added_ = 0;
}

bool ExactProducts::collect(Number& sum) {
  carry();
  // The two highest digits are less than 2^7 in size, or too much for a number.
  const Wide top = digits_.back();
  if (!fits_ || top < -1 || top > 0) return false;
  const Wide next = top * (Wide{1} << kPartBits) + digits_[kDigits - 2];
  constexpr Wide kMostNext = 1 << 6;
  if (next < -kMostNext || next >= kMostNext) return false;
  const Wide high = next * (Wide{1} << (2 * kPartBits)) +
                    digits_[kParts + 1] * (Wide{1} << kPartBits) + digits_[kParts];
  for (std::size_t k = 0; k < kParts; ++k) {
    sum.parts[k] += static_cast<std::int64_t>(digits_[kParts - 1 - k]);
  }
  return !__builtin_add_overflow(sum.high, high, &sum.high) && normalise(sum);
}

bool add_exact_product(Number& sum, const Number& a, double factor) {
  ExactProducts product;
  product.add(a, factor);
  return product.collect(sum);
}

}  // namespace placet::execute
