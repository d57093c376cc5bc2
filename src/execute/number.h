// Exact fixed-point numbers, in which canonical mode stores and adds (docs/theory.md §6.11).
//
// A number is a sum of high 2^-80 and four parts of 60 bits below it. Sums of whole numbers are
// exact and associative: whatever is added in parts, in any order and on any devices, gives the
// same bits. Numbers are rounded when they are read, and only then.
#pragma once

#include <array>
#include <cstdint>

namespace placet::execute {

__extension__ typedef __int128 Wide;

inline constexpr int kHighBits = 80;  // behind the point, of `high`
inline constexpr int kPartBits = 60;
inline constexpr std::size_t kParts = 4;
inline constexpr std::int64_t kPartMask = (std::int64_t{1} << kPartBits) - 1;

struct Number {
  Wide high = 0;
  /// Part k counts multiples of 2^-(140 + 60 k), from 0 to 2^60 - 1.
  std::array<std::int64_t, kParts> parts{};

  bool is_short() const { return (parts[0] | parts[1] | parts[2] | parts[3]) == 0; }
  friend bool operator==(const Number&, const Number&) = default;
};

/// Numbers are refused from here on: 2^46.
inline constexpr double kMostNumber = 70368744177664.0;

/// Takes what is too much for a part, or negative, over to the one before it. False: out of range.
bool normalise(Number& a);

/// a += b. False: out of range.
inline bool add_to(Number& a, const Number& b) {
  if (__builtin_add_overflow(a.high, b.high, &a.high)) return false;
  if (b.is_short()) return true;
  for (std::size_t k = 0; k < kParts; ++k) a.parts[k] += b.parts[k];
  return normalise(a);
}

inline bool add_to(float& a, float b) {
  a += b;
  return true;
}
inline bool add_to(double& a, double b) {
  a += b;
  return true;
}

/// -a.
Number negative(const Number& a);

inline bool operator<(const Number& a, const Number& b) {
  return a.high != b.high ? a.high < b.high : a.parts < b.parts;
}

/// The nearest multiple of 2^-80. `fits` becomes false where |x| is too large or x is no number.
Number number_of_real(double x, bool& fits);

/// The nearest number of 24 bits where there are parts, or high has more than 95 bits.
float rounded_long(const Number& a);

/// The nearest number of 24 bits.
inline float rounded(const Number& a) {
  constexpr float kUnit = 0x1p-80F;
  constexpr float kHigherUnit = 0x1p-48F;
  const auto short_high = static_cast<std::int64_t>(a.high);
  const bool is_short = a.is_short();
  if (is_short && short_high == a.high) return static_cast<float>(short_high) * kUnit;
  // 31 bits and more are left, and whether those below are zero: enough to round to 24.
  const auto upper = static_cast<std::int64_t>(a.high >> 32);
  if (!is_short || upper != a.high >> 32) return rounded_long(a);
  const std::int64_t more = static_cast<std::uint32_t>(a.high) != 0 ? 1 : 0;
  return static_cast<float>(upper | more) * kHigherUnit;
}

/// A sum of products that are not all multiples of 2^-80: each is rounded to one by itself, so that
/// the sum depends on no order. A product is taken apart into multiples of 2^4, 2^-40 and 2^-80,
/// which add up in binary64 without rounding for as long as kMost of them come together.
class Bins {
 public:
  static constexpr int kMost = 4096;  // 1024 in each of four sums

  /// Four products, |p| < 2^46, at once; at most kMost before `collect`.
  using Four = double __attribute__((vector_size(32)));
  void add(const Four& products) {
    Four p = products;
    const Four first = (p + kFirst) - kFirst;
    p -= first;
    const Four second = (p + kSecond) - kSecond;
    p -= second;
    first_ += first;
    second_ += second;
    third_ += (p + kThird) - kThird;
  }
  /// Adds what has come together to `sum`. False: out of range.
  bool collect(Number& sum);

 private:
  static constexpr double kFirst = 108086391056891904.0;   // 1.5 2^56
  static constexpr double kSecond = 6144.0;                // 1.5 2^12
  static constexpr double kThird = 5.587935447692871e-09;  // 1.5 2^-28
  Four first_{};
  Four second_{};
  Four third_{};
};

/// A sum of products a * factor, exact. Each factor is rounded to 24 bits and to a multiple of
/// 2^-60 before, so that such a product takes one part more.
class ExactProducts {
 public:
  void add(const Number& a, double factor);
  /// Adds them to `sum`, once. False: out of range, or there was no part left for one of them.
  bool collect(Number& sum);

 private:
  /// Of 60 bits, the lowest first: those of a number, and one above them. Products are below 2^120,
  /// so that so many may come together before what is too much for a digit is carried on.
  static constexpr std::size_t kDigits = kParts + 4;
  static constexpr int kMost = 32;

  void add_digit(std::size_t place, Wide product);
  void carry();

  std::array<Wide, kDigits> digits_{};
  int added_ = 0;
  bool fits_ = true;
};

/// sum += a * factor, exactly. The factor is rounded to 24 bits and to a multiple of 2^-60 before,
/// so that each such product takes one part more. False: out of range, or there is no part left.
bool add_exact_product(Number& sum, const Number& a, double factor);

}  // namespace placet::execute
