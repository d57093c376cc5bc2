// References between settings of one source: "${variables.length}" and the like.
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "interop/shell_arithmetic.h"
#include "interop/source_parts.h"

namespace placet {
namespace {

constexpr std::size_t kLongestReference = 4096;
constexpr int kMostRounds = 8;                                // references to references
constexpr std::size_t kMostReferred = std::size_t{16} << 20;  // bytes, in all

using Values = std::map<std::string, std::string>;

// "a.b" for "${..b}" in the value of "a.c.d": one dot is the object that holds the setting, each
// further one the object around it.
std::string place_of(const std::string& reference, const std::string& path) {
  const std::size_t dots = std::min(reference.find_first_not_of('.'), reference.size());
  if (dots == 0) return reference;
  std::string around = path;
  for (std::size_t i = 0; i < dots; ++i) {
    const std::size_t end = around.rfind('.');
    around.resize(end == std::string::npos ? 0 : end);
  }
  return (around.empty() ? "" : around + ".") + reference.substr(dots);
}

// "multiply:4, 8192", which configurations write for a product; none: it is no such text.
std::optional<std::string> multiplied(const std::string& reference) {
  static constexpr std::string_view kProduct = "multiply:";
  if (!reference.starts_with(kProduct)) return std::nullopt;
  std::string text = reference.substr(kProduct.size());
  std::ranges::replace(text, ',', '*');
  const auto none = [](const std::string&) -> std::optional<long long> { return std::nullopt; };
  const auto value = shell_number(text, none);
  return value ? std::optional(std::to_string(*value)) : std::nullopt;
}

// What a reference in a setting stands for.
std::optional<std::string> referred(const std::string& reference, const Setting& setting,
                                    const Values& values) {
  const auto found = values.find(place_of(reference, setting.path));
  if (found != values.end() && found->first != setting.path) return found->second;
  return multiplied(reference);
}

// The text with each reference to a plain value replaced; none: nothing changed.
std::optional<std::string> replaced(const Setting& setting, const Values& values) {
  std::string text;
  bool changed = false;
  for (std::size_t at = 0; at < setting.value.size();) {
    const std::size_t first = setting.value.find("${", at);
    const std::size_t close = first == std::string::npos ? first : setting.value.find('}', first);
    if (close == std::string::npos) {
      text += setting.value.substr(at);
      break;
    }
    const std::size_t open = setting.value.rfind("${", close);  // one inside another comes first
    const auto value = referred(setting.value.substr(open + 2, close - open - 2), setting, values);
    text += setting.value.substr(at, open - at);
    text += value ? *value : setting.value.substr(open, close + 1 - open);
    changed = changed || value.has_value();
    at = close + 1;
    if (text.size() > kLongestReference) return std::nullopt;
  }
  return changed ? std::optional(text) : std::nullopt;
}

// Replaces references by what settings say now; false: there was nothing to replace.
bool resolve_once(std::vector<Setting>& settings, std::size_t& added) {
  Values values;
  bool changed = false;
  for (const Setting& setting : settings) values[setting.path] = setting.value;
  for (Setting& setting : settings) {
    if (setting.value.find("${") == std::string::npos) continue;
    const auto value = replaced(setting, values);
    added += value ? value->size() : 0;
    if (!value || added > kMostReferred) continue;
    setting.value = *value;
    changed = true;
  }
  return changed;
}

}  // namespace

void resolve_references(std::vector<Setting>& settings) {
  std::size_t added = 0;
  for (int round = 0; round < kMostRounds && added < kMostReferred; ++round) {
    if (!resolve_once(settings, added)) return;
  }
}

}  // namespace placet
