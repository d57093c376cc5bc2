#include "interop/lint_fix.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <sstream>

#include "interop/shell_text.h"

namespace placet {
namespace {

// "c" of "a.b.c"; an option is one word whatever dots are in it.
std::string last_name(const std::string& path) {
  if (path.starts_with("-")) return path;
  return path.substr(path.rfind('.') + 1);
}

// A value as its form writes it: words in quotes but for YAML, and for options where a shell needs
// none. A variable has one word.
std::string written(const std::string& path, const std::string& value, SourceForm form) {
  if (form == SourceForm::arguments) {
    return path.starts_with("-") ? quoted_words({.path = path, .value = value})
                                 : quoted_word(value);
  }
  const bool is_number = value.find_first_not_of("0123456789.eE+-") == std::string::npos;
  if (form == SourceForm::yaml || is_number || value == "true" || value == "false") return value;
  return '"' + value + '"';
}

std::string indentation_of(const std::string& line) {
  return line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
}

// Where a key stands on a line, and its value behind it; npos: one of them does not.
struct Place {
  std::size_t key = std::string::npos, value = std::string::npos, value_end = std::string::npos;
};

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

}  // namespace

std::size_t name_in(const std::string& line, const std::string& name) {
  for (std::size_t at = line.find(name); at != std::string::npos; at = line.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || !is_of_name(line[at - 1]);
    if (begins && (end == line.size() || !is_of_name(line[end]))) return at;
  }
  return std::string::npos;
}

namespace {

Place place_of(const Setting& setting, const std::string& line) {
  const std::string name = last_name(setting.path);
  Place place{.key = name_in(line, name)};
  if (place.key == std::string::npos) return place;
  const std::size_t behind = place.key + name.size();
  place.value = line.find(setting.value, behind);
  place.value_end = place.value + setting.value.size();
  if (place.value != std::string::npos || !setting.path.starts_with("-")) return place;
  // A variable stands for the value of an option.
  const std::size_t word = line.find_first_not_of(" =\"", behind);
  if (word == std::string::npos || line[word] != '$') return place;
  place.value = word;
  place.value_end = std::min(line.find_first_of(" \t\"", word), line.size());
  return place;
}

// The value in a line replaced, with the quotes round it: the new one may need none, or others.
std::string with_value(std::string line, const Place& place, const LintEdit& edit,
                       SourceForm form) {
  std::size_t begin = place.value;
  std::size_t end = place.value_end;
  const bool is_quoted = begin > 0 && end < line.size() && line[begin - 1] == line[end] &&
                         (line[end] == '"' || line[end] == '\'');
  if (is_quoted) {
    --begin;
    ++end;
  }
  return line.replace(begin, end - begin, written(edit.setting.path, edit.value, form));
}

std::string with_key(const LintEdit& edit, SourceForm form) {
  const std::string name = last_name(edit.key);
  const std::string value = written(name, edit.value, form);
  switch (form) {
    case SourceForm::toml:
      return name + " = " + value;
    case SourceForm::yaml:
      return name + ": " + value;
    case SourceForm::json:
      return '"' + name + "\": " + value + ",";
    case SourceForm::arguments:
      break;
  }
  return name + (edit.value == "true" ? "" : " " + value);
}

// An option with its value out of a line, which may hold others.
std::string without_option(const Setting& setting, std::string line, const Place& place) {
  std::size_t end = place.key + last_name(setting.path).size();
  if (setting.value != "true" && place.value != std::string::npos) {
    end = place.value_end;
    // With the quotes round it.
    const bool is_quoted = end < line.size() && (line[end] == '"' || line[end] == '\'') &&
                           line[place.value - 1] == line[end];
    if (is_quoted) ++end;
  }
  line.erase(place.key, end - place.key);
  return line.find_first_not_of(" \t\\") == std::string::npos ? std::string() : line;
}

// The line as it is mended; none: the edit does not fit it. Lines may become two.
std::optional<std::string> mended(const LintEdit& edit, const std::string& line, SourceForm form) {
  const Place place = place_of(edit.setting, line);
  if (place.key == std::string::npos) return std::nullopt;
  std::string text = line;
  switch (edit.kind) {
    case LintEdit::Kind::none:
      return std::nullopt;
    case LintEdit::Kind::value:
      if (place.value == std::string::npos) return std::nullopt;
      return with_value(text, place, edit, form);
    case LintEdit::Kind::key:
      return text.replace(place.key, last_name(edit.setting.path).size(), last_name(edit.key));
    case LintEdit::Kind::drop:
      return form == SourceForm::arguments ? without_option(edit.setting, text, place)
                                           : std::string();
    case LintEdit::Kind::add:
      if (form == SourceForm::arguments) {
        return text.insert(place.key, with_key(edit, form) + " ");
      }
      return indentation_of(line) + with_key(edit, form) + "\n" + line;
  }
  return std::nullopt;
}

// JSON knows no comma before a closing bracket: where the last key goes, so does the comma before.
void drop_dangling_comma(std::vector<std::string>& lines, std::size_t taken_out) {
  const auto blank = [](const std::string& line) {
    return line.find_first_not_of(" \t\r") == std::string::npos;
  };
  std::size_t next = taken_out + 1;
  while (next < lines.size() && blank(lines[next])) ++next;
  if (next == lines.size() || indentation_of(lines[next]).size() == lines[next].size()) return;
  const char first = lines[next][lines[next].find_first_not_of(" \t")];
  if (first != '}' && first != ']') return;
  for (std::size_t i = taken_out; i-- > 0;) {
    if (blank(lines[i])) continue;
    const std::size_t end = lines[i].find_last_not_of(" \t\r");
    if (lines[i][end] == ',') lines[i].erase(end, 1);
    return;
  }
}

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Whether the line before goes on to one that ends the command: it stays, if as a blank one.
bool is_joined(const std::vector<std::string>& lines, std::size_t at, SourceForm form) {
  return form == SourceForm::arguments && at > 0 && lines[at - 1].ends_with('\\') &&
         !lines[at].ends_with('\\');
}

// The first edit of each line, by line.
std::vector<LintEdit> edits_of(const std::vector<LintFinding>& findings) {
  std::map<std::size_t, LintEdit> by_line;
  for (const LintFinding& finding : findings) {
    if (finding.edit.kind != LintEdit::Kind::none) {
      by_line.emplace(finding.edit.line, finding.edit);
    }
  }
  std::vector<LintEdit> edits;
  edits.reserve(by_line.size());
  for (auto& [line, edit] : by_line) edits.push_back(std::move(edit));
  return edits;
}

// The lines that are left, with their ends.
std::string joined(const std::vector<std::string>& lines, const std::vector<bool>& gone,
                   bool last_ends) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool ends = i + 1 < lines.size() || last_ends;
    if (!gone[i]) text += lines[i] + (ends ? "\n" : "");
  }
  return text;
}

}  // namespace

FixedText edited_text(const std::string& text, SourceForm form,
                      const std::vector<LintEdit>& edits) {
  std::vector<std::string> lines = lines_in(text);
  FixedText fixed;
  std::vector<bool> gone(lines.size(), false);
  for (const LintEdit& edit : edits) {
    const std::size_t number = edit.line;
    if (number == 0 || number > lines.size() || gone[number - 1]) continue;
    std::string& line = lines[number - 1];
    const auto after = mended(edit, line, form);
    if (!after) continue;
    fixed.changes.push_back({.line = number, .before = line, .after = *after});
    gone[number - 1] = after->empty() && !is_joined(lines, number - 1, form);
    line = *after;
    if (gone[number - 1] && form == SourceForm::json) drop_dangling_comma(lines, number - 1);
  }
  fixed.text = joined(lines, gone, text.ends_with('\n'));
  return fixed;
}

FixedText fixed_text(const std::string& text, SourceForm form,
                     const std::vector<LintFinding>& findings) {
  return edited_text(text, form, edits_of(findings));
}

}  // namespace placet
