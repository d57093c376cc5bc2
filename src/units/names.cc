#include "units/names.h"

#include <algorithm>
#include <ostream>
#include <string>

#include "units/error.h"

namespace placet {
namespace {

// Not std::isalpha: names must not depend on the locale.
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

constexpr bool may_follow(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

bool is_axis_name(std::string_view text) {
  return !text.empty() && text.size() <= AxisName::kLongest && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), may_follow);
}

}  // namespace

AxisName::AxisName(std::string_view text) {
  if (!is_axis_name(text)) {
    throw InputError({.where = "axis name",
                      .value = std::string(text),
                      .problem = "",
                      .allowed = "a letter, then letters, digits, '_', '-' or '.', at most " +
                                 std::to_string(kLongest) + " characters",
                      .nearest = ""});
  }
  std::copy(text.begin(), text.end(), characters_.begin());
}

std::ostream& operator<<(std::ostream& out, const AxisName& name) { return out << name.text(); }

std::ostream& operator<<(std::ostream& out, Rank rank) { return out << "rank " << rank.index; }

}  // namespace placet
