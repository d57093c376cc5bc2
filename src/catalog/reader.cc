#include "catalog/reader.h"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <sstream>

#include "catalog/file_text.h"
#include "catalog/toml_document.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

// What is read at most: the files of the catalogue stay below 100 KiB and 10 levels.
constexpr std::size_t kMostDocumentBytes = std::size_t{4} << 20;

std::string read_text(const std::filesystem::path& path) {
  std::string text = read_file_text(path, kMostDocumentBytes, "a file");
  if (text.empty()) throw InputError({.where = path.string(), .problem = "the file is empty"});
  return text;
}

std::string brief(const Json& value) {
  constexpr std::size_t kLongest = 60;
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    return std::isnan(value.get<double>()) ? "nan" : "inf";  // which JSON cannot spell
  }
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

std::string print_number(double n) {
  std::ostringstream out;
  out.precision(12);
  out << n;
  return out.str();
}

/// Whether the first character that is no space opens an object or a list. (A table of TOML begins
/// with a bracket too: "[batch]", but no list of JSON with a letter.)
bool begins_as_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] == '{') return true;
  if (text[first] != '[') return false;
  const std::size_t next = text.find_first_not_of(" \t\r\n", first + 1);
  return next != std::string_view::npos &&
         std::string_view("{[\"]-0123456789").find(text[next]) != std::string_view::npos;
}

}  // namespace

Json read_document(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  const bool toml =
      path.extension() == ".toml" || (path.extension() != ".json" && !begins_as_json(text));
  return toml ? parse_toml(text, path.string()) : parse_json(text, path.string());
}

Document open_document(const std::filesystem::path& path) {
  return {.where = path.string(), .value = read_document(path)};
}

Reader::Reader(const Document& document) : value_(&document.value), file_(&document.where) {}

Reader Reader::inside(const Json& value, const std::string* key, std::size_t item) const {
  return {&value, file_, std::make_shared<const Step>(Step{step_, key, item})};
}

std::string Reader::path() const {
  std::vector<const Step*> steps;
  for (const Step* step = step_.get(); step != nullptr; step = step->before.get()) {
    steps.push_back(step);
  }
  std::string path;
  for (const Step* step : steps | std::views::reverse) {
    if (step->key == nullptr) {
      path += "[" + std::to_string(step->item) + "]";
    } else {
      path += (step->before == nullptr ? "" : ".") + *step->key;
    }
  }
  return path;
}

std::string Reader::where() const { return step_ == nullptr ? *file_ : *file_ + ": " + path(); }

namespace {

/// The keys of an object; of more than a reader looks through, how many, and where they stand.
std::string keys_text(std::span<const std::string> keys) {
  constexpr std::size_t kMostListed = 24;
  if (keys.size() <= kMostListed) return list_words(keys);
  return "one of the " + std::to_string(keys.size()) + " keys that docs/formats.md lists";
}

}  // namespace

void Reader::allow(std::initializer_list<std::string_view> keys) const {
  const auto is_one = [&](const auto& entry) {
    return std::ranges::find(keys, entry.first) != keys.end();
  };
  if (is_object() && std::ranges::all_of(object(), is_one)) return;
  allow(std::vector<std::string>(keys.begin(), keys.end()));  // which says what is wrong
}

void Reader::allow(std::span<const std::string> keys) const {
  if (!is_object()) fail("is not an object", "an object with the keys " + keys_text(keys));
  for (const auto& [key, value] : object()) {
    if (std::ranges::find(keys, key) != keys.end()) continue;
    throw InputError({.where = where(),
                      .value = key,
                      .problem = key.empty() ? "an empty key says nothing" : "is not a key here",
                      .allowed = keys_text(keys),
                      .nearest = nearest(key, keys)});
  }
}

std::optional<Reader> Reader::find(std::string_view key) const {
  if (!is_object()) fail("is not an object", "an object with the key '" + std::string(key) + "'");
  const auto it = std::ranges::find(object(), key, &Json::object_t::value_type::first);
  if (it == object().end()) return std::nullopt;
  return inside(it->second, &it->first);
}

Reader Reader::at(std::string_view key) const {
  if (auto value = find(key)) return *value;
  throw InputError({.where = where(), .problem = "the key '" + std::string(key) + "' is missing"});
}

std::string Reader::text() const {
  if (!is_text()) fail("is not a text", "a text in quotes");
  auto text = value_->get<std::string>();
  if (text.empty()) fail("the text is empty", "");
  return text;
}

bool Reader::flag() const {
  if (!value_->is_boolean()) fail("is not a yes or no", "true or false");
  return value_->get<bool>();
}

std::int64_t Reader::whole(WholeRange range) const {
  const auto allowed = [&] {
    return "a whole number from " + std::to_string(range.least) + " to " +
           std::to_string(range.greatest);
  };
  if (value_->is_number_unsigned() &&
      value_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    fail("is too large", allowed());
  }
  if (!value_->is_number_integer()) fail("is not a whole number", allowed());
  const auto n = value_->get<std::int64_t>();
  if (n < range.least || n > range.greatest) fail("is out of range", allowed());
  return n;
}

double Reader::number(Range range) const {
  const bool is_number = value_->is_number();
  const double n = is_number ? value_->get<double>() : 0.0;
  if (is_number && std::isfinite(n) && n >= range.least && n <= range.greatest) return n;
  fail(is_number ? "is out of range" : "is not a number",
       "a number from " + print_number(range.least) + " to " + print_number(range.greatest));
}

std::vector<Reader> Reader::items() const {
  if (!is_list()) fail("is not a list", "a list");
  std::vector<Reader> items;
  items.reserve(value_->size());
  for (const Json& value : *value_) items.push_back(inside(value, nullptr, items.size()));
  return items;
}

std::vector<std::pair<std::string, Reader>> Reader::members() const {
  if (!is_object()) fail("is not an object", "an object");
  std::vector<std::pair<std::string, Reader>> members;
  members.reserve(object().size());
  for (const auto& [key, value] : object()) members.emplace_back(key, inside(value, &key));
  return members;
}

std::size_t Reader::one_of(std::span<const std::string> words) const {
  const std::string word = text();
  const auto it = std::find(words.begin(), words.end(), word);
  if (it != words.end()) return static_cast<std::size_t>(it - words.begin());
  throw InputError({.where = where(),
                    .value = word,
                    .problem = "is not known",
                    .allowed = list_words(words),
                    .nearest = nearest(word, words)});
}

void Reader::fail(const std::string& problem, const std::string& allowed) const {
  throw InputError(
      {.where = where(), .value = brief(*value_), .problem = problem, .allowed = allowed});
}

std::string list_words(std::span<const std::string> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace placet
