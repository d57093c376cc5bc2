// Text without blanks around it.
#pragma once

#include <string>
#include <string_view>

namespace placet {

/// The text without the spaces and tabs that it begins and ends with.
inline std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

}  // namespace placet
