#include "interop/kept_text.h"

#include <algorithm>
#include <map>
#include <set>

#include "interop/export_parts.h"
#include "interop/lint_fix.h"
#include "interop/source_parts.h"
#include "units/error.h"

namespace placet {
namespace {

// The last setting of a key; null: the source has none.
const Setting* setting_of(const Source& source, const std::string& key) {
  const auto found = std::find_if(source.settings.rbegin(), source.settings.rend(),
                                  [&](const Setting& setting) { return setting.path == key; });
  return found == source.settings.rend() ? nullptr : &*found;
}

bool is_below(const std::string& path, const std::string& parent) {
  return parent.empty() || path.starts_with(parent + ".");
}

// Whether a path stands right below a parent.
bool is_child(const std::string& path, const std::string& parent) {
  if (!is_below(path, parent)) return false;
  const std::size_t begin = parent.empty() ? 0 : parent.size() + 1;
  return path.find_first_of(".[", begin) == std::string::npos;
}

std::string object_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::string() : path.substr(0, dot);
}

// The innermost object of a new key that the source has.
std::string known_parent(const Source& source, const std::string& key) {
  std::string parent = object_of(key);
  const auto is_known = [&](const Setting& setting) { return is_below(setting.path, parent); };
  while (!parent.empty() && std::ranges::none_of(source.settings, is_known)) {
    parent = object_of(parent);
  }
  return parent;
}

// The last setting that stands in an object itself, on one line.
const Setting* child_of(const Source& source, const std::string& parent) {
  const auto is_plain_child = [&](const Setting& setting) {
    return is_child(setting.path, parent) && !setting.value.starts_with('[') &&
           !setting.value.starts_with('{');
  };
  const auto found = std::find_if(source.settings.rbegin(), source.settings.rend(), is_plain_child);
  return found == source.settings.rend() ? nullptr : &*found;
}

[[noreturn]] void fail_in_place(const Source& source, const std::string& key, std::size_t line) {
  fail_at_line(source.file, line, "cannot be changed in place: '" + key + "'",
               "a key with its value on a line of its own");
}

// The text with lines put in front of another.
std::string with_lines(const std::string& text, std::size_t line, const std::string& lines) {
  std::size_t at = 0;
  for (std::size_t i = 1; i < line && at != std::string::npos; ++i) {
    at = text.find('\n', at);
    if (at != std::string::npos) ++at;
  }
  return at == std::string::npos ? text + lines : std::string(text).insert(at, lines);
}

std::string indented(const std::string& lines, const std::string& indentation) {
  std::string text;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    text += indentation + lines.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return text;
}

std::string indentation_at(const std::string& text, std::size_t line) {
  std::size_t at = 0;
  for (std::size_t i = 1; i < line; ++i) at = text.find('\n', at) + 1;
  return text.substr(at, text.find_first_not_of(" \t", at) - at);
}

// Members of an object as lines, each with a comma behind it.
std::string members_of(const std::string& object) {
  const std::size_t begin = object.find('\n') + 1;
  const std::size_t end = object.rfind('\n', object.rfind('}'));
  std::string lines = object.substr(begin, end - begin);
  return lines + ",\n";
}

// A key below an object, as lines of the source's form.
std::string lines_for(SourceForm form, const std::string& parent, Setting setting) {
  if (!parent.empty()) setting.path.erase(0, parent.size() + 1);
  const std::string lines = configuration_text(form, {setting});
  if (form == SourceForm::json) return members_of(lines);
  return form == SourceForm::arguments ? lines.substr(4) + " \\\n" : lines;
}

// YAML may be written as JSON is.
SourceForm written_form(const Source& source, const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool has_braces = first != std::string::npos && text[first] == '{';
  return source.form == SourceForm::yaml && has_braces ? SourceForm::json : source.form;
}

std::string with_new_key(const Source& source, const std::string& text, const Setting& setting) {
  const std::string parent = known_parent(source, setting.path);
  const bool opens = !is_child(setting.path, parent);
  if (source.form == SourceForm::toml && opens) {
    // An object of its own at the end of the file.
    return text + (text.ends_with('\n') ? "\n" : "\n\n") +
           configuration_text(SourceForm::toml, {setting});
  }
  const SourceForm form = written_form(source, text);
  const std::string lines = lines_for(form, parent, setting);
  const Setting* beside = child_of(source, parent);
  if (beside != nullptr) {
    return with_lines(text, beside->line, indented(lines, indentation_at(text, beside->line)));
  }
  if (!parent.empty()) fail_in_place(source, setting.path, 1);
  if (form != SourceForm::json) return text + lines;
  const std::size_t open = text.find('{');
  if (open == std::string::npos) fail_in_place(source, setting.path, 1);
  return std::string(text).insert(open + 1, "\n" + lines);
}

std::string with_change(const Source& source, const std::string& text, const KeyChange& change) {
  const Setting* setting = setting_of(source, change.key);
  if (setting == nullptr) {
    if (!change.value) return text;
    return with_new_key(source, text, {.path = change.key, .value = *change.value, .line = 0});
  }
  const LintEdit edit{.kind = change.value ? LintEdit::Kind::value : LintEdit::Kind::drop,
                      .line = setting->line,
                      .setting = *setting,
                      .key = {},
                      .value = change.value.value_or("")};
  return edited_text(text, written_form(source, text), {edit}).text;
}

// By key its values, the changed ones as they are to be.
using ValuesByKey = std::map<std::string, std::multiset<std::string>>;

ValuesByKey values_of(const Source& source) {
  ValuesByKey values;
  for (const Setting& setting : source.settings) values[setting.path].insert(setting.value);
  return values;
}

ValuesByKey values_with(const Source& source, const KeyChange& change) {
  ValuesByKey values = values_of(source);
  std::multiset<std::string>& own = values[change.key];
  if (const Setting* last = setting_of(source, change.key)) own.erase(own.find(last->value));
  if (change.value) own.insert(*change.value);
  if (own.empty()) values.erase(change.key);
  return values;
}

// The text as a source of the same form; none: it is malformed.
std::optional<Source> parsed(const std::string& text, const Source& source) {
  try {
    return parse_source(text, source.form, source.file);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

std::string changed_text(Source source, std::string text, const std::vector<KeyChange>& changes) {
  for (const KeyChange& change : changes) {
    const Setting* setting = setting_of(source, change.key);
    const std::size_t line = setting == nullptr ? 1 : setting->line;
    const ValuesByKey wanted = values_with(source, change);
    text = with_change(source, text, change);
    auto changed = parsed(text, source);
    if (!changed || values_of(*changed) != wanted) fail_in_place(source, change.key, line);
    source = *std::move(changed);
  }
  return text;
}

}  // namespace placet
