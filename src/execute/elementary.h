// Functions of real numbers that give the same bits on every machine: sums and products of IEEE
// numbers in a fixed order, and no library (docs/theory.md §6.11). Compiled without contraction of
// products and sums. Errors are at most ten units in the last place.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace placet::execute {

namespace elementary {

// ln 2 as a number of 32 bits and the rest, so that a multiple by a small whole number is exact.
inline constexpr double kLn2High = 6.93147180369123816490e-01;
inline constexpr double kLn2Low = 1.90821492927058770002e-10;
inline constexpr double kLog2E = 1.44269504088896338700;

/// 1/n! for n up to 17.
constexpr std::array<double, 18> inverse_factorials() {
  std::array<double, 18> all{1};
  double factorial = 1;
  for (std::size_t n = 1; n < all.size(); ++n) {
    factorial *= static_cast<double>(n);
    all[n] = 1 / factorial;
  }
  return all;
}
inline constexpr std::array<double, 18> kInverseFactorials = inverse_factorials();

/// x = n ln 2 + rest, |rest| at most ln 2 / 2 and a little; |x| below 2^10.
template <class Real>
struct Halved {
  Real rest = 0;
  Real half_power = 1;  // 2^(n - 1), a normal number
};
inline Halved<double> halved(double x) {
  // Added, it leaves a whole number in the last bits; taken off again, that number.
  constexpr double kWhole = 0x1.8p52;
  const double shifted = x * kLog2E + kWhole;
  const double n = shifted - kWhole;
  const auto bits = std::bit_cast<std::uint64_t>(shifted) + 1022;
  return {(x - n * kLn2High) - n * kLn2Low, std::bit_cast<double>(bits << 52U)};
}
inline Halved<float> halved(float x) {
  constexpr float kWhole = 0x1.8p23F;
  constexpr float kHigh = 0x1.63p-1F;  // ln 2 as a number of 9 bits, and the rest
  constexpr float kLow = -2.12194440e-4F;
  const float shifted = x * static_cast<float>(kLog2E) + kWhole;
  const float n = shifted - kWhole;
  const auto bits = std::bit_cast<std::uint32_t>(shifted) + 126;
  return {(x - n * kHigh) - n * kLow, std::bit_cast<float>(bits << 23U)};
}

/// Terms `first` to `last` of exp(x), divided by x^first.
template <class Real>
Real series(Real x, std::size_t first, std::size_t last) {
  Real sum = static_cast<Real>(kInverseFactorials[last]);
  for (std::size_t i = last; i-- > first;) sum = static_cast<Real>(kInverseFactorials[i]) + x * sum;
  return sum;
}

}  // namespace elementary

/// Without a branch, so that entries that follow each other are computed side by side. Zero below
/// exp(-707.5).
inline double exp_of(double x) {
  constexpr double kLeast = -707.5;
  constexpr double kMost = 709.78;
  const double near = x < kLeast ? kLeast : x > kMost ? kMost : x;
  const elementary::Halved<double> h = elementary::halved(near);
  const double value = elementary::series(h.rest, 0, 13) * h.half_power * 2;
  const double above = x > kMost ? std::numeric_limits<double>::infinity() : value;
  const double below = x < kLeast ? 0 : above;
  return x == x ? below : x;
}

/// e / (e + 2) with e = exp(2 |x|) - 1, whose sum has no cancellation.
inline double tanh_of(double x) {
  const double size = x < 0 ? -x : x;
  const elementary::Halved<double> h = elementary::halved(size > 22 ? 44 : 2 * size);
  const double power = h.half_power * 2;
  const double e = power * (h.rest * elementary::series(h.rest, 1, 14)) + (power - 1);
  const double value = e / (e + 2);
  const double signed_value = x < 0 ? -value : value;
  return x == x ? signed_value : x;
}

double log_of(double x);  // x > 0
double erf_of(double x);
double sine_of(double x);    // |x| below 1e6
double cosine_of(double x);  // likewise
/// base^exponent, base > 0.
double power_of(double base, double exponent);
/// base^n by repeated squaring.
double whole_power_of(double base, long n);

// The same in binary32, for numbers of that format; exp is zero below exp(-86.6).

inline float exp_of(float x) {
  constexpr float kLeast = -86.6F;
  constexpr float kMost = 88.72F;
  const float near = x < kLeast ? kLeast : x > kMost ? kMost : x;
  const elementary::Halved<float> h = elementary::halved(near);
  const float value = elementary::series(h.rest, 0, 7) * h.half_power * 2;
  const float above = x > kMost ? std::numeric_limits<float>::infinity() : value;
  const float below = x < kLeast ? 0 : above;
  return x == x ? below : x;
}

inline float tanh_of(float x) {
  const float size = x < 0 ? -x : x;
  const elementary::Halved<float> h = elementary::halved(size > 10 ? 20 : 2 * size);
  const float power = h.half_power * 2;
  const float e = power * (h.rest * elementary::series(h.rest, 1, 8)) + (power - 1);
  const float value = e / (e + 2);
  const float signed_value = x < 0 ? -value : value;
  return x == x ? signed_value : x;
}

inline float log_of(float x) { return static_cast<float>(log_of(static_cast<double>(x))); }
inline float erf_of(float x) { return static_cast<float>(erf_of(static_cast<double>(x))); }

inline double root_of(double x) { return std::sqrt(x); }
inline float root_of(float x) { return std::sqrt(x); }

/// A number with its derivative by one variable: v + d e, where e*e = 0. A function written over
/// any type of numbers gives its derivative when it is called with these.
template <class Real>
struct DualOf {
  Real v = 0;
  Real d = 0;

  DualOf() = default;
  template <class Value>
    requires std::is_arithmetic_v<Value>
  DualOf(Value value) : v(static_cast<Real>(value)) {}  // NOLINT: a constant
  DualOf(Real value, Real derivative) : v(value), d(derivative) {}

  friend DualOf operator+(DualOf a, DualOf b) { return {a.v + b.v, a.d + b.d}; }
  friend DualOf operator-(DualOf a, DualOf b) { return {a.v - b.v, a.d - b.d}; }
  friend DualOf operator-(DualOf a) { return {-a.v, -a.d}; }
  friend DualOf operator*(DualOf a, DualOf b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
  friend DualOf operator/(DualOf a, DualOf b) {
    const Real q = a.v / b.v;
    return {q, (a.d - q * b.d) / b.v};
  }
};
using Dual = DualOf<double>;

template <class Real>
  requires std::is_floating_point_v<Real>
Real value_of(Real x) {
  return x;
}
template <class Real>
Real value_of(DualOf<Real> x) {
  return x.v;
}
template <class Real>
DualOf<Real> exp_of(DualOf<Real> x) {
  const Real e = exp_of(x.v);
  return {e, e * x.d};
}
template <class Real>
DualOf<Real> log_of(DualOf<Real> x) {
  return {log_of(x.v), x.d / x.v};
}
template <class Real>
DualOf<Real> tanh_of(DualOf<Real> x) {
  const Real t = tanh_of(x.v);
  return {t, (1 - t * t) * x.d};
}
template <class Real>
DualOf<Real> erf_of(DualOf<Real> x) {
  constexpr double kTwoOverRootPi = 1.12837916709551257390;
  return {erf_of(x.v), static_cast<Real>(kTwoOverRootPi) * exp_of(-x.v * x.v) * x.d};
}
template <class Real>
DualOf<Real> root_of(DualOf<Real> x) {
  const Real r = root_of(x.v);
  return {r, x.d / (2 * r)};
}

/// 1 / (1 + exp(-x)), without what overflows.
template <class T>
T sigmoid_of(T x) {
  const bool below = value_of(x) < 0;
  const T e = exp_of(below ? x : -x);
  return (below ? e : T(1)) / (T(1) + e);
}
/// x sigmoid(x)
template <class T>
T silu_of(T x) {
  return x * sigmoid_of(x);
}
/// log(1 + exp(x)) = max(x, 0) + log(1 + e), e = exp(-|x|); the second is 2 artanh(e / (2 + e)),
/// whose argument is at most 1/3, so that it has all its digits where e is small.
template <class T>
T softplus_of(T x) {
  constexpr int kTerms = 17;  // (1/9)^17 < 2^-53
  const bool below = value_of(x) < 0;
  const T e = exp_of(below ? x : -x);
  const T s = e / (T(2) + e);
  const T square = s * s;
  T sum(1.0 / (2 * kTerms + 1));
  for (int i = kTerms; i-- > 0;) sum = T(1.0 / (2 * i + 1)) + square * sum;
  return (below ? T(0) : x) + T(2) * s * sum;
}

}  // namespace placet::execute
