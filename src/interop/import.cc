#include "interop/import.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "catalog/reader.h"
#include "interop/diff.h"
#include "interop/import_parts.h"
#include "interop/lint.h"
#include "interop/source_parts.h"
#include "interop/undecided.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::array kNumbers = {"seq", "global-batch", "micro-batch", "clip"};

// "file:line" of the setting that says a word last.
std::string place_of(const std::string& word, const Imported& imported) {
  std::string place = word;
  for (const LedgerLine& line : imported.ledger) {
    if (line.fate != Fate::understood || line.what != word) continue;
    place = line.file + ":" + std::to_string(line.setting.line);
  }
  return place;
}

std::string job_line(const std::string& word, const std::string& value, const Imported& imported) {
  if (word == "freeze") return word + " = " + Json(patterns_in(value)).dump() + "\n";
  if (std::find(kNumbers.begin(), kNumbers.end(), word) == kNumbers.end()) {
    // What JSON escapes in a text, TOML escapes alike.
    return word + " = " + Json(value).dump() + "\n";
  }
  const bool is_number = !value.empty() &&
                         value.find_first_not_of("0123456789.eE+-") == std::string::npos &&
                         value.find_first_of("0123456789") != std::string::npos;
  if (!is_number) {
    throw InputError({.where = place_of(word, imported),
                      .value = value,
                      .problem = "is no number that '" + word + "' of a job can be",
                      .allowed = "a number",
                      .nearest = {},
                      .excerpt = {}});
  }
  return word + " = " + value + "\n";
}

}  // namespace

std::string name_of(Fate fate) {
  switch (fate) {
    case Fate::understood:
      return "understood";
    case Fate::no_effect:
      return "no effect";
    case Fate::kept:
      return "kept";
    case Fate::not_modelled:
      return "not modelled";
    case Fate::unknown:
      return "unknown";
    case Fate::unresolved:
      return "unresolved";
  }
  fail_internally("every fate has a name");
}

namespace {

// Whether one of the dialects has one of the names, which are without version.
bool names_one_of(const std::vector<std::string>& names, const std::vector<SharedDialect>& used) {
  return std::ranges::any_of(used, [&](const SharedDialect& other) {
    if (other == nullptr) return false;
    const std::string name = other->name.substr(0, other->name.find('@'));
    return std::ranges::find(names, name) != names.end();
  });
}

// Whether a dialect leaves it to one of the others to lead.
bool gives_way(const Dialect& dialect, const std::vector<SharedDialect>& used) {
  return names_one_of(dialect.gives_way_to, used);
}

// The first that has axes and gives way to no other leads, or the first at all.
const Dialect* leading_of(const std::vector<SharedDialect>& used) {
  const Dialect* leading = nullptr;
  for (const SharedDialect& dialect : used) {
    if (dialect == nullptr) continue;
    const bool can_lead = !dialect->axes.empty() && !gives_way(*dialect, used);
    if (leading == nullptr) leading = dialect.get();
    if (can_lead) return dialect.get();
  }
  return leading;
}

// The dialect that a source is read in; null: none is known. A name is of the sources that are
// written so; launch lines and models beside them are not.
SharedDialect reader_of(const Catalog& catalog, const ImportRequest& request,
                        const Source& source) {
  const auto dialect = [&](const std::string& name) {
    return name.empty() ? nullptr : shared_dialect(catalog, name, "--dialect");
  };
  const SharedDialect named = dialect(request.dialect);
  const SharedDialect guessed = dialect(guess_dialect(catalog, *dialect_heads(catalog), source));
  const bool is_named =
      named != nullptr && (request.sources.size() == 1 || guessed == nullptr ||
                           (guessed->form == named->form && !guessed->axes.empty()));
  return is_named ? named : guessed;
}

constexpr std::size_t kMostSources = 16;

// Files that programs are called with, where the dialect knows the program: settings as others.
void add_operands(const Dialect& dialect, Source& source) {
  for (Setting& operand : source.operands) {
    if (!dialect.keys.contains(operand.path)) continue;
    source.settings.push_back(std::move(operand));
  }
  source.operands.clear();
  std::ranges::stable_sort(source.settings, {}, &Setting::line);
}

// The file that a setting names, relative to its source; empty: it names none.
std::filesystem::path named_file(const Dialect& dialect, const std::string& source,
                                 const Setting& setting) {
  const KeyMeaning* meaning = meaning_of(dialect, setting.path);
  if (meaning == nullptr || meaning->kind != ValueKind::file) return {};
  const auto file = std::filesystem::path(source).parent_path() / setting.value;
  return file.extension() == ".py" ? std::filesystem::path() : file;  // a program says its own
}

std::filesystem::path place_on_disk(const std::filesystem::path& file) {
  std::error_code none;
  return std::filesystem::weakly_canonical(file, none);
}

// What a file says: as the script that names it writes it, or on disk; none: it is not at hand.
std::optional<Source> source_at(const std::filesystem::path& file, const Source& script) {
  const auto base = std::filesystem::path(script.file).parent_path();
  for (const ScriptFile& written : script.written) {
    if ((base / written.name).lexically_normal() != file.lexically_normal()) continue;
    if (!written.is_certain) return std::nullopt;
    return source_of({{file.string(), written.text}}, file.string());
  }
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return std::nullopt;
  return read_source(file);
}

// What an option of a script says where it could name a file, '{"stage": 2}'; none: it does not, or
// that is no text that can be read. Its lines are the option's.
std::optional<Source> written_in_place(const Dialect& dialect, const Source& script,
                                       const Setting& option) {
  const KeyMeaning* meaning = meaning_of(dialect, option.path);
  const bool is_object = option.value.starts_with('{') && option.value.ends_with('}');
  const bool is_file = meaning != nullptr && meaning->kind == ValueKind::file;
  if (script.form != SourceForm::arguments || !is_file || !is_object) return std::nullopt;
  try {
    Source source = parse_source(option.value, SourceForm::json, script.file + " " + option.path);
    for (Setting& own : source.settings) own.line = option.line;
    return source;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

void add_source(Source source, const Setting& naming, const std::string& file,
                ImportRequest& request) {
  if (request.sources.size() >= kMostSources) {
    fail_at_line(file, naming.line, "names too many files",
                 std::to_string(kMostSources) + " sources at most");
  }
  request.sources.push_back(std::move(source));
}

// The files that one source names and that are not known yet.
void add_files_of(const Dialect& dialect, const Source& source,
                  std::set<std::filesystem::path>& known, ImportRequest& request) {
  std::set<std::string> texts;
  for (const Setting& setting : source.settings) {
    if (auto written = written_in_place(dialect, source, setting)) {
      if (!texts.insert(setting.value).second) continue;  // each is read once
      add_source(std::move(*written), setting, source.file, request);
      continue;
    }
    const std::filesystem::path file = named_file(dialect, source.file, setting);
    if (file.empty() || known.contains(place_on_disk(file))) continue;
    auto read = source_at(file, source);
    if (!read) continue;
    known.insert(place_on_disk(file));
    add_source(std::move(*read), setting, source.file, request);
  }
}

// The sources that programs of a script are called with, by the line that calls.
std::map<std::size_t, std::size_t> called_with(const Dialect& dialect, const Source& script,
                                               const std::vector<Source>& sources) {
  std::map<std::size_t, std::size_t> called;
  for (const Setting& operand : script.settings) {
    const auto file = operand.path.starts_with('$') ? named_file(dialect, script.file, operand)
                                                    : std::filesystem::path();
    if (file.empty()) continue;
    const auto place = place_on_disk(file);
    const auto target = std::ranges::find_if(
        sources, [&](const Source& source) { return place_on_disk(source.file) == place; });
    called[operand.line] = static_cast<std::size_t>(target - sources.begin());
  }
  return called;
}

// Adds settings to a source in place of its own.
void add_told(std::vector<Setting> told, Source& source) {
  std::set<std::string> paths;
  for (const Setting& setting : told) paths.insert(setting.path);
  std::erase_if(source.settings, [&](const Setting& own) { return paths.contains(own.path); });
  std::ranges::move(told, std::back_inserter(source.settings));
}

// "tool train a.yaml size=4": what stands behind a file is a setting of that file, and wins over
// what it says itself.
void move_told(const Dialect& dialect, std::size_t script, ImportRequest& request) {
  const auto called = called_with(dialect, request.sources[script], request.sources);
  if (called.empty()) return;
  std::vector<Setting> kept;
  std::map<std::size_t, std::vector<Setting>> told;
  for (Setting& setting : request.sources[script].settings) {
    const auto behind = called.upper_bound(setting.line);
    const bool is_told = setting.is_told && behind != called.begin() &&
                         std::prev(behind)->second < request.sources.size() &&
                         meaning_of(dialect, setting.path) == nullptr;
    if (is_told) setting.from = request.sources[script].file;
    auto& place = is_told ? told[std::prev(behind)->second] : kept;
    place.push_back(std::move(setting));
  }
  request.sources[script].settings = std::move(kept);
  for (auto& [source, settings] : told) add_told(std::move(settings), request.sources[source]);
}

// Files that sources name, relative to their own, where they are at hand. Each is read once.
void add_named_files(const Catalog& catalog, ImportRequest& request,
                     std::vector<MissingFact>& missing) {
  std::set<std::filesystem::path> known;
  for (const Source& source : request.sources) known.insert(place_on_disk(source.file));
  for (std::size_t i = 0; i < request.sources.size(); ++i) {
    const SharedDialect dialect = reader_of(catalog, request, request.sources[i]);
    if (dialect == nullptr) continue;
    add_operands(*dialect, request.sources[i]);
    choose_command(catalog, *dialect, request.sources[i], request.given, missing);
    const Source source = request.sources[i];  // the list grows below
    add_files_of(*dialect, source, known, request);
    move_told(*dialect, i, request);
  }
}

// The ledger of all sources in their order. Those whose words yield to another's speak first.
void read_ledgers(const ImportRequest& request, const std::vector<SharedDialect>& used,
                  Imported& imported) {
  std::vector<std::vector<LedgerLine>> ledgers(used.size());
  std::size_t turn = 0;
  for (const bool yields : {true, false}) {
    for (std::size_t i = 0; i < used.size(); ++i) {
      if ((used[i] != nullptr && names_one_of(used[i]->yields_to, used)) != yields) continue;
      read_ledger(request.sources[i], used[i].get(), imported);
      ledgers[i] = std::exchange(imported.ledger, {});
      for (LedgerLine& line : ledgers[i]) line.turn = turn;
      ++turn;
    }
  }
  for (std::vector<LedgerLine>& ledger : ledgers) {
    std::ranges::move(ledger, std::back_inserter(imported.ledger));
  }
}

// Whether a dialect or a job has the word.
bool is_word_of(const std::string& word, const std::vector<SharedDialect>& used) {
  if (is_job_word(word) || word == "world-size") return true;
  return std::ranges::any_of(used, [&](const SharedDialect& dialect) {
    return dialect != nullptr && speaks_of(*dialect, word);
  });
}

// Dialects that could lead and do not, each once.
std::vector<const Dialect*> followers(const std::vector<SharedDialect>& used,
                                      const Dialect& leading) {
  std::vector<const Dialect*> found;
  for (const SharedDialect& dialect : used) {
    if (dialect == nullptr || dialect->axes.empty() || dialect.get() == &leading) continue;
    if (std::ranges::find(found, dialect.get()) == found.end()) found.push_back(dialect.get());
  }
  return found;
}

// Launch lines and models first, so that what leads stands on what they say.
void derive_all(const Catalog& catalog, const ImportRequest& request,
                const std::vector<SharedDialect>& used, const Dialect& leading,
                Imported& imported) {
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i] == nullptr || (!used[i]->axes.empty() && used[i].get() != &leading)) continue;
    if (used[i].get() == &leading) continue;
    imported.words["file"] = request.sources[i].file;
    derive_words(*used[i], imported.unclear, imported.words, request.given);
  }
  imported.words["file"] = request.sources[0].file;
  for (const Dialect* dialect : followers(used, leading)) {
    derive_beside(*dialect, imported.unclear, imported.words, request.given);
  }
  const Words said = imported.words;
  derive_words(leading, imported.unclear, imported.words, request.given);
  if (const auto model = imported.words.find("model"); model != imported.words.end()) {
    // Once more from the beginning, with the model's sizes.
    Words words = said;
    words["model"] = model->second;
    if (!request.given.contains("model")) take_model_by_path(catalog, words, imported.ledger);
    add_model_words(catalog, words);
    imported.words = std::move(words);
    derive_words(leading, imported.unclear, imported.words, request.given);
  }
  imported.words.erase("file");
}

// What launch scripts call, as the word `commands`: a list that conditions look into.
void add_commands(const ImportRequest& request, Words& words) {
  std::string list;
  for (const Source& source : request.sources) {
    for (const std::string& command : source.commands) {
      if (command.find(',') == std::string::npos) list += (list.empty() ? "" : ",") + command;
    }
  }
  if (!list.empty()) words["commands"] = list;
}

std::string file_name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The script that a script hands on to without giving any command options; empty: it does not. What
// is sourced sets variables.
std::string script_called_by(const Source& source) {
  const bool gives_options = std::ranges::any_of(
      source.settings, [](const Setting& setting) { return setting.command != 0; });
  if (source.form != SourceForm::arguments || gives_options) return "";
  const auto is_program = [](const std::string& command) { return command.ends_with(".py"); };
  if (std::ranges::any_of(source.commands, is_program)) return "";
  const auto is_handed_on = [&](const std::string& command) {
    return command.ends_with(".sh") && command.find(' ') == std::string::npos &&
           !source.commands.contains("source " + command) &&
           !source.commands.contains(". " + command);
  };
  const auto called = std::ranges::find_if(source.commands, is_handed_on);
  return called == source.commands.end() ? "" : *called;
}

// What a script is handed variables for is not said by it alone.
void ask_for_called_scripts(const ImportRequest& request, Imported& imported) {
  if (request.given.contains("placement")) return;
  for (const Source& source : request.sources) {
    const std::string called = script_called_by(source);
    const bool is_at_hand = std::ranges::any_of(request.sources, [&](const Source& other) {
      return file_name_of(other.file) == file_name_of(called);
    });
    if (called.empty() || is_at_hand) continue;
    imported.missing.push_back({"the settings of '" + called + "', which " + source.file + " calls",
                                "that file as one more of SOURCES, or --placement TEXT"});
  }
}

// Whether a given value says that the word is as where nothing is said of it.
bool leaves_unsaid(const std::vector<SharedDialect>& used, const std::string& word,
                   const std::string& value) {
  return value == kUnsaid || std::ranges::any_of(used, [&](const SharedDialect& dialect) {
           return dialect != nullptr && std::ranges::any_of(dialect->keys, [&](const auto& key) {
                    const auto found = key.second.values.find(value);
                    return key.second.word == word && found != key.second.values.end() &&
                           found->second == kUnsaid;
                  });
         });
}

// Takes back what sources say of words that flags leave unsaid.
void leave_unsaid(const std::vector<SharedDialect>& used, ImportRequest& request,
                  Imported& imported) {
  std::erase_if(request.given, [&](const auto& given) {
    if (!leaves_unsaid(used, given.first, given.second)) return false;
    imported.words.erase(given.first);
    imported.unclear.erase(given.first);
    imported.undecided.erase(given.first);
    return true;
  });
  imported.given = request.given;
}

// The batches of a ramp; a ramp that does not come out even is no list of jobs.
void add_ramp(Imported& imported) {
  imported.batch_ramp = batches_of_ramp(imported.words);
  if (!imported.batch_ramp.empty()) return;
  for (LedgerLine& line : imported.ledger) {
    if (line.word != "batch-ramp" || line.fate != Fate::understood) continue;
    line.fate = Fate::not_modelled;
    line.what = "batch: each one on the way is a job of its own, --global-batch N";
  }
}

}  // namespace

Imported import_sources(const Catalog& catalog, const ImportRequest& asked) {
  Imported imported;
  ImportRequest request = asked;
  add_named_files(catalog, request, imported.missing);
  std::vector<SharedDialect> used;
  for (const Source& source : request.sources) {
    used.push_back(reader_of(catalog, request, source));
    imported.dialects.push_back(used.back() == nullptr ? "" : used.back()->name);
    if (used.back() != nullptr) imported.read_by.emplace(source.file, used.back());
    imported.comments.emplace(source.file, source.comments);
  }
  read_ledgers(request, used, imported);
  leave_unsaid(used, request, imported);
  const Dialect* leading = leading_of(used);
  if (leading == nullptr) {
    throw InputError({.where = request.sources.front().file,
                      .value = {},
                      .problem = "holds no key by which a dialect is known",
                      .allowed = "a configuration of a dialect in data/dialects, or --dialect NAME",
                      .nearest = {},
                      .excerpt = {}});
  }
  for (const auto& [word, value] : request.given) {
    if (!is_word_of(word, used)) imported.unread.insert(word);
    imported.words[word] = value;
    imported.unclear.erase(word);
  }
  imported.words["sources"] = std::to_string(request.sources.size());
  add_commands(request, imported.words);
  add_named_sizes(catalog, *leading, imported.words);
  derive_all(catalog, request, used, *leading, imported);
  note_named_sizes(*leading, imported);
  settle_open(imported);
  mark_beyond(*leading, imported);
  ask_for_called_scripts(request, imported);
  add_needs(*leading, imported);
  for (const Dialect* dialect : followers(used, *leading)) add_needs(*dialect, imported);
  imported.words.erase("sources");
  imported.words.erase("commands");
  make_job(catalog, *leading, imported);
  ask_for_undecided(imported);
  add_ramp(imported);
  imported.findings = lint(catalog, imported);
  return imported;
}

void refuse_conflicts(const Imported& imported) {
  for (const LintFinding& finding : imported.findings) {
    if (finding.conflict.empty()) continue;
    throw InputError({.where = finding.file + ":" + std::to_string(finding.line),
                      .value = {},
                      .problem = finding.message,
                      .allowed = finding.fix,
                      .nearest = {},
                      .excerpt = finding.conflict});
  }
}

std::string job_text(const Imported& imported) {
  refuse_conflicts(imported);
  if (!imported.missing.empty()) {
    std::string what, flags;
    for (const MissingFact& fact : imported.missing) {
      what += (what.empty() ? "" : ", ") + fact.what;
      flags += (flags.empty() ? "" : " ") + fact.flag;
    }
    throw InputError({.where = imported.ledger.empty() ? "sources" : imported.ledger.front().file,
                      .value = {},
                      .problem = "does not say " + what,
                      .allowed = flags,
                      .nearest = {},
                      .excerpt = {}});
  }
  std::string text;
  for (const auto& [word, value] : imported.job) text += job_line(word, value, imported);
  return text;
}

bool is_lossy(const Imported& imported) {
  return std::any_of(imported.ledger.begin(), imported.ledger.end(), [](const LedgerLine& line) {
    return line.fate == Fate::not_modelled || line.fate == Fate::unknown ||
           line.fate == Fate::unresolved;
  });
}

}  // namespace placet
