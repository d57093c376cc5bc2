#include "execute/number.h"

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

Factor factor_of(double x) {
  const double single = static_cast<double>(static_cast<float>(x));
  const double grid = std::nearbyint(std::ldexp(single, kFactorBits));
  if (grid == 0) return {};
  int exponent = 0;
  const double fraction = std::frexp(grid, &exponent);  // grid = fraction 2^exponent
  const int shift = exponent > 24 ? exponent - 24 : 0;
  return {static_cast<std::int64_t>(std::ldexp(fraction, exponent - shift)), shift};
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
  return {static_cast<Wide>(std::nearbyint(std::ldexp(x, kHighBits))), 0};
}

float rounded(const Number& a) {
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
  constexpr double kMostFirst = kMostNumber;
  const bool fits = std::fabs(first_) < kMostFirst;
  const auto first = fits ? static_cast<std::int64_t>(first_) : 0;
  const Wide all = Wide{first} * (Wide{1} << kHighBits) +
                   Wide{static_cast<std::int64_t>(std::ldexp(second_, 40))} * (Wide{1} << 40) +
                   Wide{static_cast<std::int64_t>(std::ldexp(third_, kHighBits))};
  first_ = second_ = third_ = 0;
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
