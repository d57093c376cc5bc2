#include "algebra/field.h"

#include <array>
#include <limits>

#include "units/error.h"

namespace placet::algebra {
namespace {

constexpr unsigned kWindowBits = 8;
constexpr std::size_t kWindows = 8;
constexpr std::size_t kWindowSize = std::size_t{1} << kWindowBits;

using PowerTable = std::array<std::array<Element, kWindowSize>, kWindows>;

/// table[w][i] = g^(i 2^(8 w)).
PowerTable power_table() {
  PowerTable table{};
  Element base = kGenerator;
  for (auto& row : table) {
    Element value = 1;
    for (Element& entry : row) {
      entry = value;
      value = multiply(value, base);
    }
    base = value;
  }
  return table;
}

}  // namespace

Element power(Element a, std::uint64_t n) {
  Element result = 1;
  for (; n > 0; n >>= 1U) {
    if ((n & 1U) != 0) result = multiply(result, a);
    a = multiply(a, a);
  }
  return result;
}

Element inverse(Element a) {
  ensure(a != 0, "zero has no inverse");
  return power(a, kPrime - 2);
}

bool invert(std::vector<Element>& elements) {
  // Products of all before each; then the inverse of all, taken apart from the back.
  std::vector<Element> before(elements.size());
  Element all = 1;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (elements[i] == 0) return false;
    before[i] = all;
    all = multiply(all, elements[i]);
  }
  Element rest = inverse(all);
  for (std::size_t i = elements.size(); i-- > 0;) {
    const Element own = multiply(rest, before[i]);
    rest = multiply(rest, elements[i]);
    elements[i] = own;
  }
  return true;
}

Element element_of(const Rational& fraction) {
  const auto whole = [](std::int64_t n) {
    const auto size = n < 0 ? Element{0} - static_cast<Element>(n) : static_cast<Element>(n);
    const Element reduced = size % kPrime;
    if (reduced == 0 && n != 0) {
      throw InputError({.where = "program",
                        .value = std::to_string(n),
                        .problem = "is zero in the field that programs are run over",
                        .allowed = "factors that are no multiples of " + std::to_string(kPrime)});
    }
    return n < 0 ? subtract(0, reduced) : reduced;
  };
  return multiply(whole(fraction.numerator()), inverse(whole(fraction.denominator())));
}

Element exponential(Element n) {
  static const PowerTable kPowers = power_table();
  Element result = 1;
  for (std::size_t w = 0; w < kWindows; ++w) {
    result = multiply(result, kPowers[w][(n >> (w * kWindowBits)) % kWindowSize]);
  }
  return result;
}

}  // namespace placet::algebra
