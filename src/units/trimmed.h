// Text without blanks around it.
#pragma once

#include <algorithm>
#include <string_view>

namespace placet {

inline constexpr std::string_view kBlanks = " \t";
inline constexpr std::string_view kWhitespace = " \t\n\r\v\f";

/// The text without those of the characters `blanks` that it begins and ends with; a part of it.
constexpr std::string_view trimmed(std::string_view text, std::string_view blanks = kBlanks) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);  // none: npos + 1 is 0
}

}  // namespace placet
