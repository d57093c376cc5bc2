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
                    .problem = "the value is a date",
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

// The parser goes down a level of its own stack with every bracket, and takes time that grows with
// the square of a key's dots and of the tables and keys of a text (10,000 tables: 4 s), so that
// texts made to hurt it are refused before it sees them. Brackets and equals signs inside quotes
// count as well: no file of ours comes near the bounds.
constexpr std::size_t kMostTomlBytes = std::size_t{256} << 10;
constexpr std::size_t kLongestLine = 8192;
constexpr std::size_t kDeepestTable = 64;
constexpr std::size_t kMostTomlTables = 500;
constexpr std::size_t kMostTomlKeys = 5000;
constexpr std::size_t kMostTomlDots = 4096;

class UnrulyText {
 public:
  explicit UnrulyText(const std::string& where) : where_(where) {}

  void see(char c) {
    if (c == '\n') {
      ++line_;
      length_ = 0;
      return;
    }
    if (c == '[' && length_ == 0) require(++tables_, kMostTomlTables, "tables");
    if (c == '=') require(++keys_, kMostTomlKeys, "keys");
    if (c == '.') require(++dots_, kMostTomlDots, "dots");
    if (c == '[' || c == '{') require(++depth_, kDeepestTable, "levels");
    if ((c == ']' || c == '}') && depth_ > 0) --depth_;
    if (c != ' ' && c != '\t' && c != '\r') require(++length_, kLongestLine, "characters");
  }

 private:
  void require(std::size_t count, std::size_t most, const std::string& what) const {
    if (count <= most) return;
    const std::string problem = what == "levels"       ? "nests too deep"
                                : what == "characters" ? "the line is too long"
                                                       : "the text has too many " + what;
    throw InputError({.where = where_ + ": line " + std::to_string(line_),
                      .problem = problem,
                      .allowed = "at most " + std::to_string(most) + " " + what});
  }

  const std::string& where_;
  std::size_t line_ = 1;
  std::size_t length_ = 0;  // of the line so far, without blanks
  std::size_t depth_ = 0;
  std::size_t tables_ = 0;
  std::size_t keys_ = 0;
  std::size_t dots_ = 0;  // keys of many parts take long to read
};

void refuse_unruly(std::string_view text, const std::string& where) {
  if (text.size() > kMostTomlBytes) {
    throw InputError({.where = where,
                      .problem = "the text is too long for TOML",
                      .allowed = "at most " + std::to_string(kMostTomlBytes) + " bytes"});
  }
  UnrulyText unruly(where);
  for (const char c : text) unruly.see(c);
}

}  // namespace

Json parse_toml(std::string_view text, const std::string& where) {
  refuse_other_encodings(text, where);
  refuse_unruly(text, where);
  std::istringstream in{std::string(text)};
  try {
    return json_of(toml::parse(in, where), where);
  } catch (const toml::syntax_error& error) {
    // The line is not shown: a job may name any file, and not all are for the reader's eyes.
    throw InputError({.where = where + ": line " + std::to_string(error.location().line()),
                      .problem = "this is not TOML (" + reason_of(error.what()) + ")"});
  }
}

}  // namespace placet
