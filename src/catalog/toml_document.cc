#include "catalog/toml_document.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <toml.hpp>

#include "units/error.h"
#include "units/utf8.h"

namespace placet {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const toml::value& value, const std::string& where) {
  switch (value.type()) {
    case toml::value_t::boolean:
      return value.as_boolean();
    case toml::value_t::integer:
      return value.as_integer();
    case toml::value_t::floating:
      return value.as_floating();
    case toml::value_t::string:
      return value.as_string().str;
    case toml::value_t::array: {
      Json list = Json::array();
      for (const toml::value& item : value.as_array()) list.push_back(json_of(item, where));
      return list;
    }
    case toml::value_t::table: {
      Json object = Json::object();
      // The parser's tables have no order; ours must print the same at every run.
      std::map<std::string, const toml::value*> sorted;
      for (const auto& [key, item] : value.as_table()) sorted.emplace(key, &item);
      for (const auto& [key, item] : sorted) object[key] = json_of(*item, where);
      return object;
    }
    case toml::value_t::empty:
    case toml::value_t::offset_datetime:
    case toml::value_t::local_datetime:
    case toml::value_t::local_date:
    case toml::value_t::local_time:
      break;
  }
  throw InputError({.where = where + ": line " + std::to_string(value.location().line()),
                    .value = value.location().line_str(),
                    .problem = "is a date",
                    .allowed = "a text in quotes, a number, true or false, a list or a table"});
}

// The parser's message without its mark, its function name and its picture.
std::string reason_of(const std::string& what) {
  std::string line = what.substr(0, what.find('\n'));
  const std::string mark = "[error] ";
  if (line.starts_with(mark)) line = line.substr(mark.size());
  const std::size_t colon = line.find(": ");
  if (line.starts_with("toml::") && colon != std::string::npos) line = line.substr(colon + 2);
  return line;
}

// The parser compares iterators of different buffers when it reports text that is not UTF-8.
void refuse_other_encodings(std::string_view text, const std::string& where) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < text.size(); i += length) {
    length = utf8_length(text.substr(i));
    if (length > 0) continue;
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n');
    throw InputError(
        {.where = where + ": line " + std::to_string(line), .problem = "the text is not UTF-8"});
  }
}

// The parser goes down a level of its own stack with every bracket and takes a key's dots in
// quadratic time, so that texts made to hurt it are refused before it sees them. Brackets inside
// quotes count as well: no file of ours comes near the bounds.
constexpr std::size_t kLongestLine = 8192;
constexpr std::size_t kDeepestTable = 64;

void refuse_unruly(std::string_view text, const std::string& where) {
  std::size_t line_begin = 0;
  std::size_t depth = 0;
  std::size_t line = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      line_begin = i + 1;
    }
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (depth > kDeepestTable) {
      throw InputError({.where = where + ": line " + std::to_string(line),
                        .problem = "nests too deep",
                        .allowed = "at most " + std::to_string(kDeepestTable) + " levels"});
    }
    if (i + 1 - line_begin > kLongestLine) {
      throw InputError({.where = where + ": line " + std::to_string(line),
                        .problem = "the line is too long",
                        .allowed = "at most " + std::to_string(kLongestLine) + " characters"});
    }
  }
}

}  // namespace

Json parse_toml(std::string_view text, const std::string& where) {
  refuse_other_encodings(text, where);
  refuse_unruly(text, where);
  std::istringstream in{std::string(text)};
  try {
    return json_of(toml::parse(in, where), where);
  } catch (const toml::syntax_error& error) {
    throw InputError({.where = where + ": line " + std::to_string(error.location().line()),
                      .value = error.location().line_str(),
                      .problem = "is not TOML (" + reason_of(error.what()) + ")"});
  }
}

}  // namespace placet
