#include "catalog/engine_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <ranges>
#include <vector>

#include "units/checked.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

constexpr std::int64_t kGreatest = 1'000'000'000'000'000;
constexpr const char* kNumbers = "numbers";

// 50000000, 5e7 and 5.0e7 are the same number.
std::optional<std::int64_t> whole_in(const std::string& text) {
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(std::abs(number) <= static_cast<double>(kGreatest)) || std::trunc(number) != number) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(number);
}

NumberPlace read_place(const EngineFile& file, const Reader& number) {
  NumberPlace place{.file = &file, .title = number.at("title").text()};
  place.least = number.at("least").whole({0, kGreatest});
  place.greatest = number.at("greatest").whole({place.least, kGreatest});
  place.standard = number.at("default").whole({place.least, place.greatest});
  number.at("source").text();
  return place;
}

// The number that "{value}", "{value+1}" or "{value*2}" stands for.
std::int64_t placed(const std::string& placeholder, std::int64_t value, const std::string& where) {
  if (placeholder == "value") return value;
  const std::string rest = placeholder.substr(std::min<std::size_t>(5, placeholder.size()));
  const auto other = rest.empty() ? std::nullopt : whole_in(rest.substr(1));
  if (placeholder.starts_with("value") && other && rest.front() == '+') {
    return checked_add(value, *other, where);
  }
  if (placeholder.starts_with("value") && other && rest.front() == '*') {
    return checked_multiply(value, *other, where);
  }
  throw InputError({.where = where,
                    .value = placeholder,
                    .problem = "stands for no number",
                    .allowed = "{value}, {value+N} or {value*N}"});
}

// A text that is nothing but a placeholder becomes a number, one inside of a text its digits.
Json with_value(const Json& json, std::int64_t value, const std::string& where) {
  if (json.is_string()) {
    const std::string text = json.get<std::string>();
    const std::size_t open = text.find('{');
    const std::size_t close = open == std::string::npos ? open : text.find('}', open);
    if (close == std::string::npos) return json;
    const std::int64_t number = placed(text.substr(open + 1, close - open - 1), value, where);
    if (open == 0 && close + 1 == text.size()) return number;
    return with_value(text.substr(0, open) + std::to_string(number) + text.substr(close + 1), value,
                      where);
  }
  Json result = json;
  if (json.is_structured()) {
    for (Json& inner : result) inner = with_value(inner, value, where);
  }
  return result;
}

}  // namespace

std::map<std::string, NumberPlace> numbers_of(EngineFilesView version) {
  std::map<std::string, NumberPlace> places;
  for (const EngineFile& file : std::views::reverse(version)) {
    const Reader reader(file.document);
    const auto numbers = reader.find(kNumbers);
    if (!numbers) continue;
    for (const auto& [name, number] : numbers->members()) {
      if (!places.contains(name)) places.emplace(name, read_place(file, number));
    }
  }
  return places;
}

std::string plain_number(EngineFilesView version, const std::string& text,
                         const std::string& where) {
  const std::map<std::string, NumberPlace> places = numbers_of(version);
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const auto found = places.find(name);
  if (found == places.end()) {
    const auto names = std::views::keys(places);
    const std::vector<std::string> known(names.begin(), names.end());
    throw InputError({.where = where,
                      .value = name,
                      .problem = "is no number that " + version.back().stem() + " lets one set",
                      .allowed = known.empty() ? "none" : list_words(known),
                      .nearest = nearest(name, known)});
  }
  const auto value = whole_in(text.substr(std::min(equals + 1, text.size())));
  if (!value || *value < found->second.least || *value > found->second.greatest) {
    throw InputError({.where = where,
                      .value = text,
                      .problem = "is out of range",
                      .allowed = "a whole number from " + std::to_string(found->second.least) +
                                 " to " + std::to_string(found->second.greatest)});
  }
  return name + "=" + std::to_string(*value);
}

std::vector<Document> facts_of_number(EngineFilesView version, const std::string& plain,
                                      const std::vector<std::string>& options) {
  const std::size_t equals = plain.find('=');
  const std::string name = plain.substr(0, equals);
  const EngineFile& file = *numbers_of(version).at(name).file;
  const Reader number = Reader(file.document).at(kNumbers).at(name);
  const std::int64_t value = whole_in(plain.substr(equals + 1)).value_or(0);
  Json facts = with_value(number.json(), value, number.where());
  const Json beside = facts.contains("with") ? facts["with"] : Json::object();
  for (const char* key : {"title", "least", "greatest", "default", "source", "with"}) {
    facts.erase(key);
  }
  std::vector<Document> documents = {{.where = number.where(), .value = std::move(facts)}};
  for (const std::string& option : options) {
    if (!beside.contains(option)) continue;
    documents.push_back({.where = number.where() + ".with." + option, .value = beside[option]});
  }
  return documents;
}

}  // namespace placet
