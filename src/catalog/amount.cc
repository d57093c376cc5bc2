// Amounts of engine profiles: products of numbers and symbols, and numbers added to them.
#include <charconv>

#include "catalog/profile_catalog.h"
#include "catalog/words.h"
#include "units/checked.h"
#include "units/error.h"
#include "units/nearest.h"
#include "units/trimmed.h"

namespace placet {
namespace {

std::vector<std::string> parts_of(const std::string& text, char between) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(between, begin);
    parts.emplace_back(trimmed(std::string_view(text).substr(begin, end - begin), " "));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

// The factor that the unit behind a number stands for; 0 for an unknown unit.
std::int64_t scale_of(std::string_view unit) {
  if (unit.empty()) return 1;
  if (unit == "MB") return 1'000'000;
  if (unit == "GB") return 1'000'000'000;
  if (unit == "KiB") return std::int64_t{1} << 10;
  if (unit == "MiB") return std::int64_t{1} << 20;
  if (unit == "GiB") return std::int64_t{1} << 30;
  return 0;
}

// A number "3", "3/4", "688 MB" or "0.5 GiB" (a decimal that is exact in binary or in hundredths).
std::optional<Rational> factor_in(const std::string& part) {
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;
  const char* end = part.data() + part.size();
  auto [at, error] = std::from_chars(part.data(), end, numerator);
  if (error != std::errc() || numerator < 0) return std::nullopt;
  if (at != end && *at == '/') {
    const auto rest = std::from_chars(at + 1, end, denominator);
    if (rest.ec != std::errc() || denominator <= 0) return std::nullopt;
    at = rest.ptr;
  } else if (at != end && *at == '.') {
    constexpr int kMostDecimals = 6;
    int decimals = 0;
    for (++at; at != end && *at >= '0' && *at <= '9' && decimals < kMostDecimals;
         ++at, ++decimals) {
      numerator = numerator * 10 + (*at - '0');
      denominator *= 10;
    }
    if (decimals == 0) return std::nullopt;
  }
  const std::int64_t scale = scale_of(trimmed(std::string_view(at, end), " "));
  if (scale == 0) return std::nullopt;
  return Rational(numerator, denominator) * Rational(scale);
}

Symbol symbol_in(const std::string& part, const std::string& where) {
  if (const auto symbol = symbol_named(part)) return *symbol;
  const std::vector<std::string> words =
      words_of<Symbol>(kSymbolCount, [](Symbol s) { return name_of(s); });
  throw InputError({.where = where,
                    .value = part,
                    .problem = "is neither a number nor a known size",
                    .allowed = "a product such as \"2 * micro_batch * hidden\" or \"600 MiB\" of " +
                               list_words(words),
                    .nearest = nearest(part, words)});
}

Amount product_in(const std::string& text, const std::string& where) {
  Amount amount;
  for (const std::string& part : parts_of(text, '*')) {
    if (const auto number = factor_in(part)) {
      amount.factor = amount.factor * *number;
    } else {
      amount.symbols.push_back(symbol_in(part, where));
    }
  }
  return amount;
}

// A product, or one and whole numbers.
Amount sum_in(const std::string& text, const std::string& where) {
  const std::vector<std::string> summands = parts_of(text, '+');
  if (summands.size() == 1) return product_in(text, where);
  Amount sum{.factor = Rational(0)};
  for (const std::string& summand : summands) {
    Amount one = product_in(summand, where);
    const bool number = one.symbols.empty() && one.factor.denominator() == 1;
    const bool second = !sum.symbols.empty() || one.symbols.empty();
    if (!number && second) {
      refuse(where, text, "adds more than whole numbers to a product",
             "such as \"7 + tensor_degree\"");
    }
    if (number) {
      sum.added = checked_add(sum.added, one.factor.numerator(), where);
    } else {
      sum.factor = one.factor;
      sum.symbols = std::move(one.symbols);
    }
  }
  return sum;
}

}  // namespace

Amount parse_amount(const std::string& text, const std::string& where) {
  constexpr std::string_view kBound = " at most ";
  const std::size_t bound = text.find(kBound);
  Amount amount = sum_in(text.substr(0, bound), where);
  if (bound == std::string::npos) return amount;
  const auto most =
      factor_in(std::string(trimmed(std::string_view(text).substr(bound + kBound.size()), " ")));
  if (!most || most->denominator() != 1) {
    refuse(where, text, "is bounded by what is no whole number",
           "such as \"4 * owned at most 4 GB\"");
  }
  amount.most = most->numerator();
  return amount;
}

}  // namespace placet
