#include "interop/source.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "catalog/file_text.h"
#include "interop/source_parts.h"
#include "units/error.h"
#include "units/utf8.h"

namespace placet {
namespace {

constexpr std::size_t kMostBytes = std::size_t{4} << 20;
constexpr std::size_t kMostSettings = 100000;

// What follows a '#', and in JSON a "//".
std::vector<std::string> comments_of(const std::string& text, SourceForm form) {
  std::vector<std::string> comments;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::size_t mark = line.find('#');
    if (form == SourceForm::json) mark = std::min(mark, line.find("//"));
    comments.push_back(mark == std::string::npos ? std::string() : line.substr(mark + 1));
  }
  return comments;
}

// "{" and then a key or the end, as no script begins.
bool is_json_object(const std::string& text) {
  const std::size_t open = text.find_first_not_of(" \t\r\n");
  if (open == std::string::npos || text[open] != '{') return false;
  const std::size_t next = text.find_first_not_of(" \t\r\n", open + 1);
  return next != std::string::npos && (text[next] == '"' || text[next] == '}');
}

// By the name's ending; JSON goes by other names too.
SourceForm form_of(const std::filesystem::path& path, const std::string& text) {
  const std::string ending = path.extension().string();
  if (ending == ".toml") return SourceForm::toml;
  if (ending == ".yaml" || ending == ".yml") return SourceForm::yaml;
  if (ending == ".json" || ending == ".hjson" || ending == ".fragment") return SourceForm::json;
  return is_json_object(text) ? SourceForm::json : SourceForm::arguments;
}

// "[table]", or "key = value" with blanks around the sign, which shells do not allow. Behind the
// bracket of a shell's test stands a blank.
bool is_toml_line(const std::string& line) {
  const std::size_t inside = line.find_first_not_of('[');
  const bool is_table = inside != 0 && inside != std::string::npos && line[inside] != ' ';
  return is_table || (line.front() != '[' && line.find(" = ") != std::string::npos);
}

// "key: value", "key:", "---".
bool is_yaml_line(const std::string& line) {
  if (line == "---") return true;
  const std::size_t colon = line.find(':');
  if (colon == std::string::npos || line.find_first_of(" \t") < colon) return false;
  return colon + 1 == line.size() || line[colon + 1] == ' ';
}

// Of a text without a name that says it: what its first line that says something looks like.
SourceForm form_of_text(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#!")) return SourceForm::arguments;
    line.erase(0, line.find_first_not_of(" \t"));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '{' || line.starts_with("//")) return SourceForm::json;
    if (is_toml_line(line)) return SourceForm::toml;
    return is_yaml_line(line) ? SourceForm::yaml : SourceForm::arguments;
  }
  return SourceForm::arguments;
}

// A line of a script that has many words is taken apart at once.
void refuse_large_script(const std::string& text, const std::string& file) {
  constexpr std::size_t kMostLines = 100000;
  constexpr std::size_t kLongestLine = std::size_t{1} << 20;
  std::size_t line = 1;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (line > kMostLines) {
      fail_at_line(file, line, "holds too many lines", std::to_string(kMostLines) + " at most");
    }
    if (end - at > kLongestLine) {
      fail_at_line(file, line, "is too long", std::to_string(kLongestLine) + " bytes at most");
    }
    at = end + 1;
  }
}

void take_script(ScriptSettings script, Source& source) {
  source.settings = std::move(script.settings);
  source.idle = std::move(script.idle);
  source.blocks = std::move(script.blocks);
  source.commands = std::move(script.commands);
  source.operands = std::move(script.operands);
  source.written = std::move(script.written);
}

}  // namespace

std::string name_of(SourceForm form) {
  switch (form) {
    case SourceForm::toml:
      return "toml";
    case SourceForm::yaml:
      return "yaml";
    case SourceForm::json:
      return "json";
    case SourceForm::arguments:
      return "arguments";
  }
  fail_internally("every form of source has a name");
}

void fail_at_line(const std::string& file, std::size_t line, const std::string& problem,
                  const std::string& allowed) {
  throw InputError({.where = file + ":" + std::to_string(line),
                    .value = {},
                    .problem = problem,
                    .allowed = allowed,
                    .nearest = {},
                    .excerpt = {}});
}

Source parse_source(const std::string& text, SourceForm form, const std::string& file) {
  if (form == SourceForm::arguments) refuse_large_script(text, file);
  Source source{.file = file, .form = form, .settings = {}, .comments = comments_of(text, form)};
  switch (form) {
    case SourceForm::toml:
      source.settings = toml_settings(text, file);
      break;
    case SourceForm::yaml:
      source.settings = yaml_settings(text, file);
      resolve_references(source.settings);
      break;
    case SourceForm::json:
      source.settings = json_settings(valid_utf8(text), file);
      break;
    case SourceForm::arguments:
      take_script(script_settings(valid_utf8(text)), source);
      break;
  }
  if (source.settings.size() + source.idle.size() > kMostSettings) {
    const bool is_idle = source.settings.size() <= kMostSettings;
    fail_at_line(file, (is_idle ? source.idle.back() : source.settings[kMostSettings]).line,
                 "holds too many settings", std::to_string(kMostSettings) + " at most");
  }
  return source;
}

ConfigurationText read_source_text(const std::filesystem::path& path) {
  std::string text = read_file_text(path, kMostBytes, "a configuration or a launch script");
  const SourceForm form = form_of(path, text);
  return {.text = std::move(text), .form = form};
}

ConfigurationText source_text_of(const SourceTexts& texts, const std::string& name) {
  const auto found = texts.find(name);
  if (found == texts.end()) return read_source_text(name);
  const std::string& text = found->second;
  if (text.size() > kMostBytes) {
    throw InputError({.where = name,
                      .problem = "the text is too long",
                      .allowed = "a configuration or a launch script of at most " +
                                 std::to_string(kMostBytes) + " bytes"});
  }
  const std::filesystem::path path(name);
  return {.text = text, .form = path.has_extension() ? form_of(path, text) : form_of_text(text)};
}

Source source_of(const SourceTexts& texts, const std::string& name) {
  const ConfigurationText source = source_text_of(texts, name);
  return parse_source(source.text, source.form, name);
}

Source read_source(const std::filesystem::path& path) {
  const ConfigurationText source = read_source_text(path);
  return parse_source(source.text, source.form, path.string());
}

}  // namespace placet
