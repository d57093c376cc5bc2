// What becomes of each key of a source.
#include <algorithm>
#include <charconv>

#include "interop/import_parts.h"
#include "interop/stage_text.h"
#include "interop/undecided.h"
#include "units/nearest.h"

namespace placet {
namespace {

bool is_unresolved(const std::string& value) {
  return value.find('$') != std::string::npos || value == "auto" || value.find("{{") == 0;
}

// Whether a key was probably meant by another word: it begins so, or is a slip of the pen away, of
// one character in short words and of three in long ones. These bounds are a choice: seen were
// "--rank" for RANK and "--stats" for --ntasks, which nobody meant.
bool is_slip(std::string_view path, std::string_view key) {
  constexpr std::size_t kShort = 5;
  constexpr std::size_t kLong = 12;
  const std::size_t size = path.size() - std::min(path.find_first_not_of('-'), path.size());
  const std::size_t most = size <= kShort ? 1 : size <= kLong ? 2 : 3;
  return key.starts_with(path) || edit_distance(path, key) <= most;
}

// An option may be meant for another option, and a variable for a variable.
std::string nearest_key(const Dialect& dialect, const std::string& path) {
  std::vector<std::string> known;
  for (const auto& [key, meaning] : dialect.keys) {
    if (!key.ends_with('*') && key.starts_with('-') == path.starts_with('-')) known.push_back(key);
  }
  const std::string key = nearest(path, known);
  return is_slip(path, key) ? key : "";
}

// What becomes of a key that gives no word.
Fate fate_of(const std::string& effect) {
  if (effect == "none") return Fate::no_effect;
  return effect == "kept" ? Fate::kept : Fate::not_modelled;
}

std::optional<std::string> counterpart(const KeyMeaning& meaning, const std::string& value);

// "[a, b]" and "a b" item by item, joined by commas.
std::optional<std::string> counterpart_of_each(KeyMeaning meaning, const std::string& list) {
  meaning.each = false;
  std::string said;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t begin = std::min(list.find_first_not_of(", []\"'", at), list.size());
    at = std::min(list.find_first_of(", []\"'", begin), list.size());
    if (begin == at) continue;
    const auto item = counterpart(meaning, list.substr(begin, at - begin));
    if (!item) return std::nullopt;
    said += (said.empty() ? "" : ",") + *item;
  }
  return said;
}

// What a value says; none: it has no counterpart.
std::optional<std::string> counterpart(const KeyMeaning& meaning, const std::string& value) {
  static const std::set<ValueKind> kLists = {ValueKind::stages, ValueKind::names, ValueKind::zeros,
                                             ValueKind::devices};
  if (kLists.contains(meaning.kind) && value.empty()) return std::nullopt;
  if (meaning.values.empty()) return value;
  if (meaning.each) return counterpart_of_each(meaning, value);
  auto found = meaning.values.find(value);
  if (found == meaning.values.end()) found = meaning.values.find("*");
  if (found == meaning.values.end()) return std::nullopt;
  return found->second == kItself ? value : found->second;
}

// A key without a value leaves what the engine takes by itself.
bool is_empty(const std::string& value) {
  static const std::set<std::string> kNothing = {"",  "null", "Null", "NULL",
                                                 "~", "None", "[]",   "{}"};
  return kNothing.contains(value);
}

bool spells_number(const std::string& text) {
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc() && end == text.data() + text.size();
}

// A value that nothing says anything of.
bool take_open_value(const KeyMeaning& meaning, LedgerLine& line, Imported& imported) {
  const std::string& value = line.setting.value;
  if (meaning.values.contains(value) || meaning.values.contains("*")) return false;
  if (is_empty(value)) {
    line.fate = Fate::no_effect;
    line.what = "empty: as if '" + meaning.word + "' were not said";
    return true;
  }
  // A template's placeholder is no number either, nor is what a shell has yet to work out.
  const bool is_no_number = meaning.kind == ValueKind::whole && meaning.values.empty() &&
                            !spells_number(plain_spelling(value, meaning.kind));
  if (!is_unresolved(value) && !is_no_number) return false;
  line.fate = Fate::unresolved;
  line.what = "'" + meaning.word + "': --set " + meaning.word + "=VALUE gives it";
  imported.unclear.insert(meaning.word);
  imported.words[meaning.word + "-open"] = "true";  // rules may ask whether it was said at all
  if (value != "auto") imported.words[meaning.word + "-unread"] = "true";
  return true;
}

// Whether a value changes nothing: the engine's profile reckons with it anyway.
bool takes_anyway(const KeyMeaning& meaning, const std::string& value) {
  return std::ranges::find(meaning.assumed, plain_spelling(value, meaning.kind)) !=
         meaning.assumed.end();
}

/// The word's value, for all that follows from it.
void say(const KeyMeaning& meaning, const std::string& value, Imported& imported) {
  imported.unclear.erase(meaning.word);
  if (meaning.kind == ValueKind::stages) {
    imported.words[meaning.word + "-count"] = std::to_string(std::ranges::count(value, ',') + 1);
  }
  const auto [said, is_new] = imported.words.emplace(meaning.word, value);
  // The branches of a script say one thing in two ways: rules may ask for that.
  if (!is_new && said->second != value) imported.words[meaning.word + "-twice"] = "true";
  said->second = value;
}

// A key that gives no word.
void understand_effect(const KeyMeaning& meaning, bool is_assumed, LedgerLine& line) {
  line.fate = is_assumed ? Fate::understood : fate_of(meaning.effect);
  if (is_assumed) line.what = "as the engine's profile has it";
  if (line.fate != Fate::not_modelled) return;
  const bool says_nothing = is_empty(line.setting.value);
  if (says_nothing) line.fate = Fate::no_effect;
  line.what = says_nothing ? "empty: as if it were not said" : meaning.effect;
}

void understand(const KeyMeaning& meaning, LedgerLine& line, Imported& imported) {
  const bool is_assumed = takes_anyway(meaning, line.setting.value);
  if (meaning.word.empty()) return understand_effect(meaning, is_assumed, line);
  line.what = line.word = meaning.word;
  if (take_open_value(meaning, line, imported)) return;
  if (meaning.kind == ValueKind::zeros) {
    const auto length = length_of_digits(line.setting.value);
    if (length) imported.words[meaning.word + "-count"] = *length;
  }
  const auto value = counterpart(meaning, plain_spelling(line.setting.value, meaning.kind));
  if (!value) {
    imported.unclear.insert(meaning.word);
    imported.words[meaning.word + "-unread"] = "true";  // rules may ask whether it was said at all
    line.fate = Fate::not_modelled;
    line.what = meaning.word + ": this value has no counterpart";
    return;
  }
  if (*value == kUnsaid) {
    line.fate = Fate::no_effect;
    line.what = "as if '" + meaning.word + "' were not said";
    return;
  }
  // A word that rules read may still be one that a job cannot say.
  const bool is_said = meaning.effect.empty() || is_assumed;
  line.fate = is_said ? Fate::understood : Fate::not_modelled;
  if (!is_said) line.what = meaning.effect;
  line.said = *value;
  say(meaning, *value, imported);
}

// Comparing spellings is dear, and nobody reads more of them.
constexpr std::size_t kMostNearest = 100;

std::string why_idle(const Setting& setting) {
  if (setting.read_command != 0) {
    return "of the command at line " + std::to_string(setting.command) + "; that at line " +
           std::to_string(setting.read_command) + " is read";
  }
  if (setting.ended_at != 0) {
    return "behind the end of the command, at line " + std::to_string(setting.ended_at);
  }
  if (!setting.unused_list.empty()) return "in " + setting.unused_list + ", which no command gets";
  return "in a branch that is not taken";
}

// What a script says to no command.
void add_idle(const Source& source, std::size_t begin, Imported& imported) {
  if (source.idle.empty()) return;
  for (const Setting& setting : source.idle) {
    imported.ledger.push_back({.file = source.file,
                               .setting = setting,
                               .fate = Fate::no_effect,
                               .what = why_idle(setting)});
  }
  std::stable_sort(
      imported.ledger.begin() + static_cast<std::ptrdiff_t>(begin), imported.ledger.end(),
      [](const LedgerLine& a, const LedgerLine& b) { return a.setting.line < b.setting.line; });
}

// A line that nobody can read leaves nothing of what earlier lines of its source say of the word.
void take_back_unread(const LedgerLine& line, const Words& before, Imported& imported) {
  const bool is_unread =
      line.said.empty() && imported.unclear.contains(line.word) && line.fate != Fate::no_effect;
  if (!is_unread || line.setting.value == "auto" || !line.setting.branches.empty()) return;
  if (!before.contains(line.word)) imported.words.erase(line.word);
}

bool is_variable(const Source& source, const Setting& setting) {
  return source.form == SourceForm::arguments && !setting.path.starts_with('-') && !setting.is_told;
}

}  // namespace

void read_ledger(const Source& source, const Dialect* dialect, Imported& imported) {
  const std::size_t begin = imported.ledger.size();
  const Words before = imported.words;
  std::size_t compared = 0;
  for (const Setting& setting : source.settings) {
    LedgerLine line{.file = setting.from.empty() ? source.file : setting.from,
                    .setting = setting,
                    .fate = Fate::unknown,
                    .what = {},
                    .word = {},
                    .said = {}};
    const KeyMeaning* meaning = dialect == nullptr ? nullptr : meaning_of(*dialect, setting.path);
    if (setting.is_of_container) {
      line.fate = Fate::no_effect;
      line.what = "of the container that the script runs in";
    } else if (meaning != nullptr) {
      understand(*meaning, line, imported);
    } else if (is_variable(source, setting)) {
      line.fate = Fate::kept;  // a variable: its uses are settings of their own
    } else if (dialect != nullptr && compared++ < kMostNearest) {
      line.what = nearest_key(*dialect, setting.path);
    }
    take_back_unread(line, before, imported);
    imported.ledger.push_back(std::move(line));
  }
  mark_undecided(source, begin, before, imported);
  add_idle(source, begin, imported);
}

void settle_open(Imported& imported) {
  for (LedgerLine& line : imported.ledger) {
    const auto found = imported.words.find(line.word);
    if (line.fate != Fate::unresolved || found == imported.words.end()) continue;
    line.fate = Fate::understood;
    line.what = line.word + ", which is " + found->second + " by what else is said";
  }
}

void mark_beyond(const Dialect& dialect, Imported& imported) {
  for (const BeyondJob& beyond : dialect.beyond) {
    if (!holds(beyond.when, imported.words)) continue;
    for (LedgerLine& line : imported.ledger) {
      if (line.word != beyond.word || line.fate != Fate::understood) continue;
      line.fate = Fate::not_modelled;
      line.what = beyond.effect;
    }
  }
}

}  // namespace placet
