// Functions of real numbers that give the same bits on every machine: sums and products of IEEE
// numbers in a fixed order, and no library (docs/theory.md §6.11). Compiled without contraction of
// products and sums. Errors are at most ten units in the last place.
#pragma once

namespace placet::execute {

double exp_of(double x);
double log_of(double x);  // x > 0
double tanh_of(double x);
double erf_of(double x);
double sine_of(double x);    // |x| below 1e6
double cosine_of(double x);  // likewise
/// base^exponent, base > 0.
double power_of(double base, double exponent);
/// base^n by repeated squaring.
double whole_power_of(double base, long n);

/// A number with its derivative by one variable: v + d e, where e*e = 0. A function written over
/// any type of numbers gives its derivative when it is called with these.
struct Dual {
  double v = 0;
  double d = 0;

  Dual() = default;
  Dual(double value, double derivative = 0) : v(value), d(derivative) {}  // NOLINT: a constant
};

inline Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
inline Dual operator-(Dual a, Dual b) { return {a.v - b.v, a.d - b.d}; }
inline Dual operator-(Dual a) { return {-a.v, -a.d}; }
inline Dual operator*(Dual a, Dual b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
inline Dual operator/(Dual a, Dual b) {
  const double q = a.v / b.v;
  return {q, (a.d - q * b.d) / b.v};
}

inline double value_of(double x) { return x; }
inline double value_of(Dual x) { return x.v; }
Dual exp_of(Dual x);
Dual log_of(Dual x);
Dual tanh_of(Dual x);
Dual erf_of(Dual x);
double root_of(double x);
Dual root_of(Dual x);

}  // namespace placet::execute
