// The quantities that Placet adds up, each a type of its own, so that bytes are never added to
// operations and a rate is never taken for an amount.
//
//   Bytes           whole, 64 bits     memory and traffic
//   Count           whole, 64 bits     elements of a tensor, messages, devices, tokens
//   Flops           real               arithmetic; one step of a large model passes 2^63
//   Seconds         real
//   BytesPerSecond  real
//   FlopsPerSecond  real
//
// Built only by named factories and read only by named readers:
//   gibibytes(80)           a Bytes          in_gibibytes(b)       the double 80.0
//   bytes(2) * count(7)     14 bytes         gibibytes(3) / gibibytes(2)      the double 1.5
//
// What exists: + - and comparison of equal units; ratio of equal units (a double); scaling by a
// plain number (whole ones by integers only); and these products across units:
//   Bytes * Count = Bytes               Bytes / BytesPerSecond = Seconds
//   Flops * Count = Flops               Bytes / Seconds = BytesPerSecond
//   Seconds * Count = Seconds           Flops / FlopsPerSecond = Seconds
//                                       Flops / Seconds = FlopsPerSecond
// Nothing else compiles (tests/units/quantity_test.cc proves it). Dividing a whole quantity among
// owners is the business of shares.h, taking an exact fraction of it that of rational.h.
//
// Whole quantities never wrap: a result beyond 2^63 - 1 throws InputError (see checked.h). Each
// type is one machine word, trivially copyable, constexpr; pass them by value.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "units/checked.h"

namespace placet {

/// A whole number of something. Unit is an empty struct with `static constexpr std::string_view
/// kName`. Zero unless built otherwise.
template <class Unit>
class Whole {
 public:
  constexpr Whole() = default;

  /// The two doors between quantities and plain integers; meant for factories and readers. Others
  /// write bytes(n) and in_bytes(b).
  static constexpr Whole of(std::int64_t units) { return Whole(units); }
  constexpr std::int64_t units() const { return units_; }

  friend constexpr auto operator<=>(Whole, Whole) = default;

  friend constexpr Whole operator+(Whole a, Whole b) {
    return Whole(checked_add(a.units_, b.units_, Unit::kName));
  }
  friend constexpr Whole operator-(Whole a, Whole b) {
    return Whole(checked_subtract(a.units_, b.units_, Unit::kName));
  }
  friend constexpr Whole operator*(Whole a, std::integral auto times) {
    return Whole(checked_multiply(a.units_, narrow(times), Unit::kName));
  }
  friend constexpr Whole operator*(std::integral auto times, Whole a) { return a * times; }

  /// The ratio of two amounts, a plain number. Exact when both stay below 2^53; where exactness
  /// beyond that matters, take exact_ratio of rational.h.
  friend constexpr double operator/(Whole a, Whole b) {
    return static_cast<double>(a.units_) / static_cast<double>(b.units_);
  }

  constexpr Whole& operator+=(Whole other) { return *this = *this + other; }
  constexpr Whole& operator-=(Whole other) { return *this = *this - other; }

 private:
  constexpr explicit Whole(std::int64_t units) : units_(units) {}

  template <std::integral Integer>
  static constexpr std::int64_t narrow(Integer value) {
    if constexpr (sizeof(Integer) >= sizeof(std::int64_t) && std::unsigned_integral<Integer>) {
      if (value > static_cast<Integer>(INT64_MAX)) throw_overflow(Unit::kName, "factor");
    }
    return static_cast<std::int64_t>(value);
  }

  std::int64_t units_ = 0;
};

/// A real amount of something. Zero unless built otherwise.
template <class Unit>
class Real {
 public:
  constexpr Real() = default;

  /// As in Whole: for factories and readers.
  static constexpr Real of(double units) { return Real(units); }
  constexpr double units() const { return units_; }

  friend constexpr auto operator<=>(Real, Real) = default;

  friend constexpr Real operator+(Real a, Real b) { return Real(a.units_ + b.units_); }
  friend constexpr Real operator-(Real a, Real b) { return Real(a.units_ - b.units_); }
  friend constexpr Real operator*(Real a, double times) { return Real(a.units_ * times); }
  friend constexpr Real operator*(double times, Real a) { return a * times; }
  friend constexpr Real operator/(Real a, double parts) { return Real(a.units_ / parts); }
  friend constexpr double operator/(Real a, Real b) { return a.units_ / b.units_; }

  constexpr Real& operator+=(Real other) { return *this = *this + other; }
  constexpr Real& operator-=(Real other) { return *this = *this - other; }

 private:
  constexpr explicit Real(double units) : units_(units) {}

  double units_ = 0.0;
};

struct BytesUnit {
  static constexpr std::string_view kName = "bytes";
};
struct CountUnit {
  static constexpr std::string_view kName = "count";
};
struct FlopsUnit {
  static constexpr std::string_view kName = "FLOPs";
};
struct SecondsUnit {
  static constexpr std::string_view kName = "seconds";
};
struct BytesPerSecondUnit {
  static constexpr std::string_view kName = "bytes/s";
};
struct FlopsPerSecondUnit {
  static constexpr std::string_view kName = "FLOP/s";
};

using Bytes = Whole<BytesUnit>;
using Count = Whole<CountUnit>;
using Flops = Real<FlopsUnit>;
using Seconds = Real<SecondsUnit>;
using BytesPerSecond = Real<BytesPerSecondUnit>;
using FlopsPerSecond = Real<FlopsPerSecondUnit>;

/// Factories of whole quantities. They take integers only: gigabytes(1.5) does not compile. A real
/// number from a data file goes through round_up_to_bytes.
constexpr Bytes bytes(std::integral auto n) { return Bytes::of(1) * n; }
constexpr Bytes kilobytes(std::integral auto n) { return Bytes::of(1'000) * n; }
constexpr Bytes megabytes(std::integral auto n) { return Bytes::of(1'000'000) * n; }
constexpr Bytes gigabytes(std::integral auto n) { return Bytes::of(1'000'000'000) * n; }
constexpr Bytes terabytes(std::integral auto n) { return Bytes::of(1'000'000'000'000) * n; }
constexpr Bytes kibibytes(std::integral auto n) { return Bytes::of(std::int64_t{1} << 10) * n; }
constexpr Bytes mebibytes(std::integral auto n) { return Bytes::of(std::int64_t{1} << 20) * n; }
constexpr Bytes gibibytes(std::integral auto n) { return Bytes::of(std::int64_t{1} << 30) * n; }
constexpr Bytes tebibytes(std::integral auto n) { return Bytes::of(std::int64_t{1} << 40) * n; }
constexpr Count count(std::integral auto n) { return Count::of(1) * n; }

/// The least whole number of bytes that is not below `n` (a figure such as 79.1 * 2^30 from a data
/// file). Throws InputError if n is not a number or beyond the range of Bytes.
Bytes round_up_to_bytes(double n);

/// Factories of real quantities.
constexpr Flops flops(double n) { return Flops::of(n); }
constexpr Flops gigaflops(double n) { return Flops::of(n * 1e9); }
constexpr Flops teraflops(double n) { return Flops::of(n * 1e12); }
constexpr Seconds seconds(double n) { return Seconds::of(n); }
constexpr Seconds milliseconds(double n) { return Seconds::of(n * 1e-3); }
constexpr Seconds microseconds(double n) { return Seconds::of(n * 1e-6); }
constexpr Seconds nanoseconds(double n) { return Seconds::of(n * 1e-9); }
constexpr BytesPerSecond bytes_per_second(double n) { return BytesPerSecond::of(n); }
constexpr BytesPerSecond gigabytes_per_second(double n) { return BytesPerSecond::of(n * 1e9); }
constexpr BytesPerSecond gigabits_per_second(double n) { return BytesPerSecond::of(n * 1e9 / 8); }
constexpr FlopsPerSecond flops_per_second(double n) { return FlopsPerSecond::of(n); }
constexpr FlopsPerSecond teraflops_per_second(double n) { return FlopsPerSecond::of(n * 1e12); }

/// Readers: the plain number of the named unit.
constexpr std::int64_t in_bytes(Bytes amount) { return amount.units(); }
constexpr double in_gigabytes(Bytes amount) { return amount / gigabytes(1); }
constexpr double in_gibibytes(Bytes amount) { return amount / gibibytes(1); }
constexpr double in_mebibytes(Bytes amount) { return amount / mebibytes(1); }
constexpr std::int64_t in_ones(Count amount) { return amount.units(); }
constexpr double in_flops(Flops amount) { return amount.units(); }
constexpr double in_seconds(Seconds amount) { return amount.units(); }
constexpr double in_milliseconds(Seconds amount) { return amount / milliseconds(1); }
constexpr double in_bytes_per_second(BytesPerSecond rate) { return rate.units(); }
constexpr double in_flops_per_second(FlopsPerSecond rate) { return rate.units(); }

/// The products across units. Dividing by a rate or a time of zero gives infinity, as for doubles:
/// rates come from data files, whose reader refuses zero.
constexpr Bytes operator*(Bytes each, Count times) { return each * times.units(); }
constexpr Bytes operator*(Count times, Bytes each) { return each * times; }
constexpr Flops operator*(Flops each, Count times) {
  return each * static_cast<double>(times.units());
}
constexpr Flops operator*(Count times, Flops each) { return each * times; }
constexpr Seconds operator*(Seconds each, Count times) {
  return each * static_cast<double>(times.units());
}
constexpr Seconds operator*(Count times, Seconds each) { return each * times; }

/// 3.35e12 bytes at 3.35 TB/s take one second.
constexpr Seconds operator/(Bytes amount, BytesPerSecond rate) {
  return Seconds::of(static_cast<double>(amount.units()) / rate.units());
}
constexpr BytesPerSecond operator/(Bytes amount, Seconds time) {
  return BytesPerSecond::of(static_cast<double>(amount.units()) / time.units());
}
constexpr Seconds operator/(Flops amount, FlopsPerSecond rate) {
  return Seconds::of(amount.units() / rate.units());
}
constexpr FlopsPerSecond operator/(Flops amount, Seconds time) {
  return FlopsPerSecond::of(amount.units() / time.units());
}

/// "1024 bytes", "0.5 seconds": for messages and tests; people's units are the business of report.
template <class Unit>
std::string to_string(Whole<Unit> amount) {
  return std::to_string(amount.units()) + " " + std::string(Unit::kName);
}
template <class Unit>
std::string to_string(Real<Unit> amount);  // the shortest digits that read back to the same number

template <class Unit>
std::ostream& operator<<(std::ostream& out, Whole<Unit> amount);
template <class Unit>
std::ostream& operator<<(std::ostream& out, Real<Unit> amount);

}  // namespace placet
