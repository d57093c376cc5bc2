#include "catalog/versions.h"

#include <algorithm>
#include <compare>

namespace placet {
namespace {

// The digits that a text begins with.
std::string_view leading_digits(std::string_view text) {
  return text.substr(0, text.find_first_not_of("0123456789"));
}

// Two runs of digits as numbers of any size.
std::strong_ordering compare_numbers(std::string_view a, std::string_view b) {
  a.remove_prefix(std::min(a.find_first_not_of('0'), a.size()));
  b.remove_prefix(std::min(b.find_first_not_of('0'), b.size()));
  return a.size() != b.size() ? a.size() <=> b.size() : a <=> b;
}

}  // namespace

bool is_older_version(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const std::string_view x = leading_digits(a);
    const std::string_view y = leading_digits(b);
    const bool numbers = !x.empty() && !y.empty();
    const auto order = numbers ? compare_numbers(x, y) : a.front() <=> b.front();
    if (std::is_neq(order)) return std::is_lt(order);
    a.remove_prefix(numbers ? x.size() : 1);
    b.remove_prefix(numbers ? y.size() : 1);
  }
  return a.size() < b.size();
}

std::string newest_of_name(const std::vector<std::string>& names, const std::string& name) {
  std::string_view newest;
  for (const std::string& candidate : names) {
    if (candidate == name) return name;
    if (!candidate.starts_with(name + "@")) continue;
    const std::string_view version = std::string_view(candidate).substr(name.size() + 1);
    if (newest.empty() || is_older_version(newest, version)) newest = version;
  }
  return newest.empty() ? std::string() : name + "@" + std::string(newest);
}

}  // namespace placet
