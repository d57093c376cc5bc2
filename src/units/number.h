// A number from a whole text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace placet {

/// The number that a text is, from its first character to its last; none: it is no number, or one
/// beyond the type. Case: number_in<int>("12") is 12, of "12 " and "1e3" none.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end ? std::optional(number) : std::nullopt;
}

}  // namespace placet
