// Arithmetic on 64-bit integers that never wraps.
//
// The integers of the theory (elements, bytes, messages) stay far below 2^63 for every job that
// exists: 10^13 parameters of 16 bytes are 2^47. A result beyond it comes from an absurd size in
// the input, so it is an InputError, with the operation as its place.
#pragma once

#include <cstdint>
#include <string_view>

namespace placet {

/// Throws the OverflowError "<what>: a sum exceeds ..., the largest whole number that is handled".
/// `what` names the quantity ("bytes"), `operation` the step that failed ("sum").
[[noreturn]] void throw_overflow(std::string_view what, std::string_view operation);

/// a + b, a - b, a * b; throws InputError outside the range of int64.
constexpr std::int64_t checked_add(std::int64_t a, std::int64_t b,
                                   std::string_view what = "whole numbers") {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) [[unlikely]] {
    throw_overflow(what, "sum");
  }
  return result;
}

constexpr std::int64_t checked_subtract(std::int64_t a, std::int64_t b,
                                        std::string_view what = "whole numbers") {
  std::int64_t result = 0;
  if (__builtin_sub_overflow(a, b, &result)) [[unlikely]] {
    throw_overflow(what, "difference");
  }
  return result;
}

constexpr std::int64_t checked_multiply(std::int64_t a, std::int64_t b,
                                        std::string_view what = "whole numbers") {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) [[unlikely]] {
    throw_overflow(what, "product");
  }
  return result;
}

/// a + b and a * b, and the largest or smallest number where that is out of range: for comparisons
/// only.
constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (!__builtin_add_overflow(a, b, &result)) return result;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

constexpr std::int64_t saturating_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (!__builtin_mul_overflow(a, b, &result)) return result;
  return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

}  // namespace placet
