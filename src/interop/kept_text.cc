#include "interop/kept_text.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "catalog/reader.h"
#include "interop/export_parts.h"
#include "interop/lint_fix.h"
#include "interop/shell_text.h"
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

// Where a line begins; npos: the text has no such line.
std::size_t begin_of_line(const std::string& text, std::size_t line) {
  std::size_t at = 0;
  for (std::size_t i = 1; i < line && at != std::string::npos; ++i) {
    at = text.find('\n', at);
    if (at != std::string::npos) ++at;
  }
  return at;
}

// The text with lines put in front of another.
std::string with_lines(const std::string& text, std::size_t line, const std::string& lines) {
  const std::size_t at = begin_of_line(text, line);
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
  return form == SourceForm::json ? members_of(lines) : lines;
}

// YAML may be written as JSON is.
SourceForm written_form(const Source& source, const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool has_braces = first != std::string::npos && text[first] == '{';
  return source.form == SourceForm::yaml && has_braces ? SourceForm::json : source.form;
}

// Where the key of a setting stands in the text; npos: it does not stand on its line.
std::size_t place_in(const std::string& text, const Setting& setting) {
  const std::size_t begin = begin_of_line(text, setting.line);
  if (begin == std::string::npos) return begin;
  const std::size_t end = std::min(text.find('\n', begin), text.size());
  const std::size_t at = name_in(text.substr(begin, end - begin), setting.path);
  return at == std::string::npos ? at : begin + at;
}

bool is_directive(const std::string& text, std::size_t line) {
  return text.compare(begin_of_line(text, line) + indentation_at(text, line).size(), 1, "#") == 0;
}

// Quotes inside of others would end these.
void check_quotes(const Source& source, const std::string& text, const Setting& setting,
                  const std::string& written) {
  if (written.find('\'') == std::string::npos) return;
  if (!is_inside_quotes(text, place_in(text, setting))) return;
  fail_in_place(source, setting.path, setting.line);
}

// A new option of a launch script, in front of the last of the engine's own: on its line, so that
// the call has it wherever it ends.
std::string with_new_option(const Source& source, const std::string& text, const Setting& setting,
                            const std::vector<std::string>& own) {
  const auto is_own = [&](const Setting& other) {
    return std::ranges::count(own, other.path) > 0 && !is_directive(text, other.line);
  };
  const auto last = std::find_if(source.settings.rbegin(), source.settings.rend(), is_own);
  if (last == source.settings.rend()) {
    fail_at_line(source.file, 1, "has no place for '" + setting.path + "'",
                 "a call with at least one option of the engine");
  }
  const std::size_t at = place_in(text, *last);
  if (at == std::string::npos) fail_in_place(source, setting.path, last->line);
  const std::string words = arguments_text({setting}).substr(4);  // without its indentation
  check_quotes(source, text, *last, words);
  return std::string(text).insert(at, words + " ");
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

std::string with_change(const Source& source, const std::string& text, const KeyChange& change,
                        const std::vector<std::string>& own) {
  const bool is_script = source.form == SourceForm::arguments;
  const Setting* setting = setting_of(source, change.key);
  if (setting == nullptr) {
    if (!change.value) return text;
    const Setting added{.path = change.key, .value = *change.value, .line = 0};
    return is_script ? with_new_option(source, text, added, own)
                     : with_new_key(source, text, added);
  }
  if (is_script && change.value) check_quotes(source, text, *setting, quoted_word(*change.value));
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

std::string line_in(const std::string& text, std::size_t line) {
  const std::size_t begin = begin_of_line(text, line);
  if (line == 0 || begin == std::string::npos) return {};
  return text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
}

// The source with values that refer to others, "${a.b}", as they are written.
Source as_written(Source source, const std::string& text) {
  if (source.form != SourceForm::yaml) return source;
  for (Setting& setting : source.settings) {
    const std::string line = line_in(text, setting.line);
    if (line.find("${") != std::string::npos) setting.value = line;
  }
  return source;
}

// The key that a setting takes its value from, "a: ${b.c}"; empty: the value is not one reference
// to a key of the source.
std::string referred_key(const Source& source, const std::string& text, const Setting& setting) {
  constexpr const char* kAround = " \t\r\"'";
  if (source.form != SourceForm::yaml) return {};
  std::string line = line_in(text, setting.line);
  line.resize(std::min(line.find(" #"), line.size()));
  const std::size_t open = line.find("${");
  const std::size_t close = line.find('}');
  if (open == std::string::npos || open == 0 || close == std::string::npos) return {};
  const std::size_t before = line.find_last_not_of(kAround, open - 1);
  if (before == std::string::npos || line[before] != ':') return {};
  if (line.find_first_not_of(kAround, close + 1) != std::string::npos) return {};
  const std::string key = line.substr(open + 2, close - open - 2);
  return setting_of(source, key) == nullptr ? std::string() : key;
}

// A key that takes its value from another is changed there.
KeyChange where_it_is_said(const Source& source, const std::string& text, KeyChange change) {
  constexpr int kMostReferences = 8;
  for (int i = 0; i < kMostReferences && change.value; ++i) {
    const Setting* setting = setting_of(source, change.key);
    std::string key = setting == nullptr ? "" : referred_key(source, text, *setting);
    if (key.empty()) break;
    change.key = std::move(key);
  }
  return change;
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

// Strict JSON in which a key has no line of its own: all of it on one, or nothing in it.
bool is_on_one_line(const Source& source, const std::string& text) {
  if (source.form != SourceForm::json) return false;
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  const bool has_lines = begin != std::string::npos && text.find('\n', begin) < end;
  return (!has_lines || source.settings.empty()) && Json::accept(text);
}

void change_in(Json& tree, const KeyChange& change, const Source& source) {
  Json* object = &tree;
  std::size_t begin = 0;
  for (std::size_t dot = change.key.find('.'); dot != std::string::npos;
       dot = change.key.find('.', begin)) {
    object = &(*object)[change.key.substr(begin, dot - begin)];
    if (!object->is_object() && !object->is_null()) fail_in_place(source, change.key, 1);
    begin = dot + 1;
  }
  const std::string name = change.key.substr(begin);
  if (name.ends_with(']')) fail_in_place(source, change.key, 1);
  if (!change.value) {
    object->erase(name);
  } else {
    const std::string text = configuration_text(SourceForm::json, {{name, *change.value}});
    (*object)[name] = Json::parse(text).at(name);
  }
}

// The whole tree with the changes in it, a key a line, keys in their order.
std::string written_anew(Source source, const std::string& text,
                         const std::vector<KeyChange>& changes) {
  Json tree = Json::parse(text);
  if (!tree.is_object()) fail_in_place(source, changes.front().key, 1);
  source = parse_source(tree.dump(2), source.form, source.file);
  for (const KeyChange& change : changes) {
    const ValuesByKey wanted = values_with(source, change);
    change_in(tree, change, source);
    auto changed = parsed(tree.dump(2), source);
    if (!changed || values_of(*changed) != wanted) fail_in_place(source, change.key, 1);
    source = *std::move(changed);
  }
  return tree.dump(2) + "\n";
}

}  // namespace

std::string changed_text(Source source, std::string text, const std::vector<KeyChange>& changes,
                         const std::vector<std::string>& own) {
  if (!changes.empty() && is_on_one_line(source, text)) return written_anew(source, text, changes);
  for (const KeyChange& asked : changes) {
    const KeyChange change = where_it_is_said(source, text, asked);
    const Setting* setting = setting_of(source, change.key);
    if (setting != nullptr && change.value == setting->value) continue;
    const std::size_t line = setting == nullptr ? 1 : setting->line;
    const ValuesByKey wanted = values_with(source, change);
    const ValuesByKey written = values_with(as_written(source, text), change);
    text = with_change(source, text, change, own);
    auto changed = parsed(text, source);
    // Others may change with it that refer to it, but not as they are written.
    const bool is_alone = changed && (values_of(*changed) == wanted ||
                                      values_of(as_written(*changed, text)) == written);
    if (!is_alone) fail_in_place(source, change.key, line);
    source = *std::move(changed);
  }
  return text;
}

}  // namespace placet
