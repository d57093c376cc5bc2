#include "execute/elementary.h"

#include <array>
#include <cmath>
#include <limits>

namespace placet::execute {
namespace {

// ln 2 as a number of 32 bits and the rest, so that a multiple by a small whole number is exact.
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kLog2E = 1.44269504088896338700;
constexpr double kTwoOverRootPi = 1.12837916709551257390;
// pi/2 in three parts of 33 bits and less.
constexpr double kHalfPi1 = 1.57079632673412561417;
constexpr double kHalfPi2 = 6.07710050630396597660e-11;
constexpr double kHalfPi3 = 2.02226624879595063154e-21;
constexpr double kTwoOverPi = 0.63661977236758134308;

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
constexpr std::array<double, 18> kInverseFactorials = inverse_factorials();

/// 1/f! - r^2/(f+2)! + r^4/(f+4)! - ... for f = 0 or 1; |r| at most pi/4.
double circular(double r, std::size_t first) {
  const double square = r * r;
  double sum = 0;
  for (std::size_t terms = 9; terms-- > 0;) {
    sum = kInverseFactorials[first + 2 * terms] - square * sum;
  }
  return sum;
}

double sine_near(double r) { return r * circular(r, 1); }
double cosine_near(double r) { return circular(r, 0); }

struct Quarter {
  double rest = 0;
  long quarter = 0;  // 0 to 3
};

Quarter quarter_of(double x) {
  const double n = std::nearbyint(x * kTwoOverPi);
  const double rest = ((x - n * kHalfPi1) - n * kHalfPi2) - n * kHalfPi3;
  return {rest, static_cast<long>(n) & 3};
}

}  // namespace

double exp_of(double x) {
  if (x > 709.7) return std::numeric_limits<double>::infinity();
  if (x < -745) return 0;
  const double n = std::nearbyint(x * kLog2E);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double sum = kInverseFactorials[13];
  for (std::size_t i = 13; i-- > 0;) sum = kInverseFactorials[i] + r * sum;
  return std::ldexp(sum, static_cast<int>(n));
}

/// ln x = n ln 2 + 2 artanh((m - 1) / (m + 1)), x = m 2^n.
double log_of(double x) {
  int n = 0;
  double m = std::frexp(x, &n);
  if (m < 0.70710678118654752440) {
    m *= 2;
    --n;
  }
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 0;
  for (int k = 23; k > 1; k -= 2) sum = (1.0 / k + sum) * square;
  const double whole = n;
  return whole * kLn2High + (2 * s + (2 * s * sum + whole * kLn2Low));
}

/// Near zero by the continued fraction x/(1 + x^2/(3 + x^2/(5 + ...))) (Lambert), where the
/// quotient of exponentials would cancel.
double tanh_of(double x) {
  const double size = std::fabs(x);
  if (size > 22) return x > 0 ? 1 : -1;
  if (size > 0.6) {
    const double t = 1 - 2 / (exp_of(2 * size) + 1);
    return x > 0 ? t : -t;
  }
  const double square = x * x;
  double below = 19;
  for (int k = 17; k > 0; k -= 2) below = k + square / below;
  return x / below;
}

/// 2/sqrt(pi) exp(-x^2) (x + 2x^3/3 + 4x^5/15 + ...): all terms have one sign.
double erf_of(double x) {
  if (std::fabs(x) > 6) return x > 0 ? 1 : -1;
  const double square = x * x;
  double term = x;
  double sum = x;
  for (int n = 1; n < 200; ++n) {
    term *= 2 * square / (2 * n + 1);
    const double next = sum + term;
    if (next == sum) break;
    sum = next;
  }
  return kTwoOverRootPi * exp_of(-square) * sum;
}

double sine_of(double x) {
  const Quarter q = quarter_of(x);
  const double s = (q.quarter & 1) != 0 ? cosine_near(q.rest) : sine_near(q.rest);
  return (q.quarter & 2) != 0 ? -s : s;
}

double cosine_of(double x) {
  const Quarter q = quarter_of(x);
  const double c = (q.quarter & 1) != 0 ? sine_near(q.rest) : cosine_near(q.rest);
  return q.quarter == 1 || q.quarter == 2 ? -c : c;
}

double power_of(double base, double exponent) { return exp_of(exponent * log_of(base)); }

double whole_power_of(double base, long n) {
  double result = 1;
  for (double square = base; n > 0; n >>= 1, square *= square) {
    if ((n & 1) != 0) result *= square;
  }
  return result;
}

double root_of(double x) { return std::sqrt(x); }

Dual exp_of(Dual x) {
  const double e = exp_of(x.v);
  return {e, e * x.d};
}
Dual log_of(Dual x) { return {log_of(x.v), x.d / x.v}; }
Dual tanh_of(Dual x) {
  const double t = tanh_of(x.v);
  return {t, (1 - t * t) * x.d};
}
Dual erf_of(Dual x) { return {erf_of(x.v), kTwoOverRootPi * exp_of(-x.v * x.v) * x.d}; }
Dual root_of(Dual x) {
  const double r = std::sqrt(x.v);
  return {r, x.d / (2 * r)};
}

}  // namespace placet::execute
