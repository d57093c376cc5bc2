#include "interop/source.h"

#include <algorithm>
#include <sstream>

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

SourceForm form_of(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".toml") return SourceForm::toml;
  if (ending == ".yaml" || ending == ".yml") return SourceForm::yaml;
  if (ending == ".json" || ending == ".hjson" || ending == ".fragment") return SourceForm::json;
  return SourceForm::arguments;
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
      source.settings = argument_settings(valid_utf8(text));
      break;
  }
  if (source.settings.size() > kMostSettings) {
    fail_at_line(file, source.settings[kMostSettings].line, "holds too many settings",
                 std::to_string(kMostSettings) + " at most");
  }
  return source;
}

ConfigurationText read_source_text(const std::filesystem::path& path) {
  return {.text = read_file_text(path, kMostBytes, "a configuration or a launch script"),
          .form = form_of(path)};
}

Source read_source(const std::filesystem::path& path) {
  const ConfigurationText source = read_source_text(path);
  return parse_source(source.text, source.form, path.string());
}

}  // namespace placet
