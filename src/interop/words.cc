// What conditions and texts over words say.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>

#include "interop/dialect.h"
#include "interop/rule_reader.h"
#include "interop/stage_text.h"

namespace placet {
namespace {

std::string text_of(const Reader& value) { return value.is_text() ? value.text() : value.print(); }

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::optional<std::string> optional_text(const Reader& object, const char* key) {
  const auto value = object.find(key);
  if (!value) return std::nullopt;
  return text_of(*value);
}

WordCondition read_condition(const Reader& object) {
  object.allow(
      {"word", "known", "is", "is-not", "above", "below", "not-multiple-of", "has", "contains"});
  WordCondition condition;
  condition.word = object.at("word").text();
  if (const auto known = object.find("known")) condition.known = known->flag();
  if (const auto is = object.find("is")) {
    if (is->is_list()) {
      for (const Reader& item : is->items()) condition.is.push_back(text_of(item));
    } else {
      condition.is.push_back(text_of(*is));
    }
  }
  condition.is_not = optional_text(object, "is-not");
  condition.above = optional_text(object, "above");
  condition.below = optional_text(object, "below");
  condition.not_multiple_of = optional_text(object, "not-multiple-of");
  condition.has = optional_text(object, "has");
  if (const auto parts = object.find("contains")) {
    for (const Reader& item : parts->items()) condition.contains.push_back(lower(item.text()));
  }
  return condition;
}

std::optional<long long> operand(const std::string& text, const Words& words) {
  const auto found = words.find(text);
  return whole_number(found == words.end() ? text : found->second);
}

bool compares(const WordCondition& condition, const std::string& value, const Words& words) {
  const auto number = whole_number(value);
  const auto with = [&](const std::optional<std::string>& text, auto&& relation) {
    if (!text) return true;
    const auto other = operand(*text, words);
    return number && other && relation(*number, *other);
  };
  return with(condition.above, [](long long a, long long b) { return a > b; }) &&
         with(condition.below, [](long long a, long long b) { return a < b; }) &&
         with(condition.not_multiple_of,
              [](long long a, long long b) { return b > 0 && a % b != 0; });
}

bool contains_one(const std::string& text, const std::vector<std::string>& parts) {
  return std::ranges::any_of(
      parts, [&](const std::string& part) { return text.find(part) != std::string::npos; });
}

bool holds_one(const WordCondition& condition, const Words& words) {
  const auto found = words.find(condition.word);
  if (condition.known && *condition.known != (found != words.end())) return false;
  if (found == words.end()) return condition.known.has_value();
  const std::string& value = found->second;
  const auto is = [&](const std::string& text) {
    return text.find('{') == std::string::npos ? text == value : filled(text, words) == value;
  };
  if (!condition.is.empty() && std::none_of(condition.is.begin(), condition.is.end(), is)) {
    return false;
  }
  if (condition.is_not && is(*condition.is_not)) return false;
  if (condition.has && ("," + value + ",").find("," + *condition.has + ",") == std::string::npos) {
    return false;
  }
  if (!condition.contains.empty() && !contains_one(lower(value), condition.contains)) return false;
  return compares(condition, value, words);
}

}  // namespace

std::vector<WordCondition> read_conditions(const Reader& list) {
  std::vector<WordCondition> conditions;
  for (const Reader& item : list.items()) conditions.push_back(read_condition(item));
  return conditions;
}

std::vector<WordCondition> conditions_at(const Reader& object, const char* key) {
  const auto list = object.find(key);
  return list ? read_conditions(*list) : std::vector<WordCondition>{};
}

bool holds(std::span<const WordCondition> conditions, const Words& words) {
  return std::ranges::all_of(conditions,
                             [&](const WordCondition& c) { return holds_one(c, words); });
}

std::optional<std::string> filled(const std::string& text, const Words& words) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = text.find('{', at);
    const std::size_t close = open == std::string::npos ? open : text.find('}', open);
    if (close == std::string::npos) return result + text.substr(at);
    const auto found = words.find(text.substr(open + 1, close - open - 1));
    if (found == words.end()) return std::nullopt;
    result += text.substr(at, open - at) + found->second;
    at = close + 1;
  }
  return result;
}

std::optional<long long> whole_number(const std::string& text) {
  long long number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

namespace {

std::string plain_flag(const std::string& value) {
  constexpr std::array<std::string_view, 6> kYes = {"true", "True", "TRUE", "yes", "on", "1"};
  constexpr std::array<std::string_view, 6> kNo = {"false", "False", "FALSE", "no", "off", "0"};
  if (std::ranges::find(kYes, value) != kYes.end()) return "true";
  if (std::ranges::find(kNo, value) != kNo.end()) return "false";
  return value;
}

// 4096.0, 4_096 and 4.096e3 as 4096.
std::string plain_whole(const std::string& value) {
  std::string digits = value;
  std::erase(digits, '_');
  if (whole_number(digits)) return digits;
  double number = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_number = fault == std::errc() && end == digits.data() + digits.size();
  constexpr double kGreatest = 1e15;
  if (!is_number || !(std::abs(number) <= kGreatest) || std::trunc(number) != number) return value;
  return std::to_string(static_cast<long long>(number));
}

// "[a, b]" and "a b" as "a,b"; empty where one of them is no plain name, but a pattern.
std::string plain_names(const std::string& value) {
  constexpr const char* kBetween = ", []\"'";
  std::string names;
  for (std::size_t at = 0; at < value.size();) {
    const std::size_t begin = std::min(value.find_first_not_of(kBetween, at), value.size());
    at = std::min(value.find_first_of(kBetween, begin), value.size());
    if (begin == at) continue;
    const std::string name = value.substr(begin, at - begin);
    if (name.find_first_of("()|\\^$+*?{}") != std::string::npos) return {};
    names += (names.empty() ? "" : ",") + name;
  }
  return names;
}

// "0,1" and "host:0,1@other:0,1" by how many numbers they have; empty: other things are named.
std::string count_of_devices(const std::string& value) {
  std::size_t count = 0;
  for (std::size_t at = 0; at <= value.size();) {
    std::size_t end = std::min(value.find_first_of(",@", at), value.size());
    std::string item = value.substr(at, end - at);
    const bool begins_host = at == 0 || value[at - 1] == '@';
    if (const std::size_t colon = item.find(':'); begins_host && colon != std::string::npos) {
      item.erase(0, colon + 1);
    }
    const auto number = whole_number(item);
    if (!number || *number < 0) return {};
    ++count;
    at = end + 1;
  }
  return std::to_string(count);
}

}  // namespace

std::string plain_spelling(const std::string& value, ValueKind kind) {
  if (kind == ValueKind::flag) return plain_flag(value);
  if (kind == ValueKind::whole) return plain_whole(value);
  if (kind == ValueKind::names) return plain_names(value);
  if (kind == ValueKind::stages) return blocks_of_stages(value).value_or("");
  if (kind == ValueKind::zeros) return zeros_in_front(value).value_or("");
  if (kind == ValueKind::devices) return count_of_devices(value);
  return value;
}

}  // namespace placet
