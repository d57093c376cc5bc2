#include "execute/elementary.h"

#include <cmath>

namespace placet::execute {
namespace {

using elementary::kInverseFactorials;
using elementary::kLn2High;
using elementary::kLn2Low;

constexpr double kTwoOverRootPi = 1.12837916709551257390;
// pi/2 in three parts of 33 bits and less.
constexpr double kHalfPi1 = 1.57079632673412561417;
constexpr double kHalfPi2 = 6.07710050630396597660e-11;
constexpr double kHalfPi3 = 2.02226624879595063154e-21;
constexpr double kTwoOverPi = 0.63661977236758134308;

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

}  // namespace placet::execute
