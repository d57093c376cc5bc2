#include "interop/lint.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>

#include "catalog/memory.h"
#include "catalog/reader.h"
#include "interop/rule_reader.h"
#include "interop/undecided.h"

namespace placet {
namespace {

// What --fix does for a rule: a new value for a word, a word that is left out, or one that is
// added.
struct RuleChange {
  LintEdit::Kind kind = LintEdit::Kind::none;
  std::string word, value;
};

// A rule over words. It is said at the first setting of one of `at` that the sources hold.
struct LintRule {
  std::string code, name, severity, message, fix;
  std::vector<std::string> at;
  std::vector<WordCondition> when;
  RuleChange change;
  bool ends_job = false;  // the engine does not start: no job follows
};

RuleChange read_change(const Reader& object) {
  object.allow({"set", "drop", "add", "value"});
  RuleChange change;
  const auto take = [&](const char* key, LintEdit::Kind kind) {
    const auto word = object.find(key);
    if (!word) return;
    change.kind = kind;
    change.word = word->text();
  };
  take("set", LintEdit::Kind::value);
  take("drop", LintEdit::Kind::drop);
  take("add", LintEdit::Kind::add);
  if (const auto value = object.find("value")) change.value = value->text();
  return change;
}

LintRule load_rule(const CatalogFile& file) {
  const Document document = open_document(file.path);
  const Reader reader(document);
  reader.allow({"schema", "code", "name", "severity", "at", "when", "message", "fix", "change",
                "meaning", "source", "ends-job"});
  LintRule rule{.code = reader.at("code").text(),
                .name = reader.at("name").text(),
                .severity = reader.at("severity").text(),
                .message = reader.at("message").text(),
                .fix = reader.at("fix").text(),
                .at = {},
                .when = read_conditions(reader.at("when")),
                .change = {},
                .ends_job = false};
  reader.at("source").text();
  for (const Reader& item : reader.at("at").items()) rule.at.push_back(item.text());
  if (const auto change = reader.find("change")) rule.change = read_change(*change);
  if (const auto ends = reader.find("ends-job")) rule.ends_job = ends->flag();
  return rule;
}

std::shared_ptr<const std::vector<LintRule>> load_rules(const Catalog& catalog) {
  return shared<std::vector<LintRule>>(catalog, "lint rules", [&] {
    std::vector<LintRule> rules;
    for (const CatalogFile& file : files_in(catalog, "lint")) rules.push_back(load_rule(file));
    return rules;
  });
}

constexpr const char* kAnywhere = "*";  // in `at`: the first setting there is

const LedgerLine* line_of(const Imported& imported, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    for (const LedgerLine& line : imported.ledger) {
      if (line.word == word && line.fate != Fate::no_effect) return &line;
    }
    if (word == kAnywhere && !imported.ledger.empty()) return &imported.ledger.front();
  }
  return nullptr;
}

// "a.b" of "a.b.c", with its dot.
std::string parent_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot + 1);
}

// The key of a dialect that says a word, in the object of a setting.
std::string key_beside(const Dialect& dialect, const Setting& setting, const std::string& word) {
  for (const auto& [path, meaning] : dialect.keys) {
    if (meaning.word != word || path.ends_with('*')) continue;
    if (parent_of(path) == parent_of(setting.path)) return path;
  }
  return "";
}

LintEdit edit_of(const LintRule& rule, const LedgerLine& found, const Imported& imported) {
  LintEdit edit;
  const RuleChange& change = rule.change;
  const auto value = filled(change.value, imported.words);
  if (change.kind == LintEdit::Kind::none || !value) return edit;
  const LedgerLine* line = &found;
  if (change.kind != LintEdit::Kind::add) line = line_of(imported, {change.word});
  if (line == nullptr) return edit;
  edit = {.kind = change.kind,
          .line = line->setting.line,
          .setting = line->setting,
          .key = {},
          .value = *value};
  const auto dialect = imported.read_by.find(line->file);
  if (change.kind != LintEdit::Kind::add) return line->file == found.file ? edit : LintEdit{};
  if (dialect != imported.read_by.end()) {
    edit.key = key_beside(*dialect->second, line->setting, change.word);
  }
  return edit.key.empty() ? LintEdit{} : edit;
}

// What settings say of the rule's words, a line each: of its numbers, where it has any.
std::string places_of(const LintRule& rule, const Imported& imported) {
  std::string numbers, texts;
  for (const LedgerLine& line : imported.ledger) {
    const bool speaks = std::ranges::find(rule.at, line.word) != rule.at.end();
    if (!speaks || line.fate != Fate::understood) continue;
    std::string& places = whole_number(line.said) ? numbers : texts;
    places += (places.empty() ? "  " : "\n  ") + line.file + ":" +
              std::to_string(line.setting.line) + "  " + line.setting.path + " = " + line.said;
  }
  return numbers.empty() ? texts : numbers;
}

LintFinding finding_at(const LedgerLine& line, const LintRule& rule, const Imported& imported) {
  return {.code = rule.code,
          .name = rule.name,
          .severity = rule.severity,
          .file = line.file,
          .line = line.setting.line,
          .message = filled(rule.message, imported.words).value_or(rule.message),
          .fix = filled(rule.fix, imported.words).value_or(rule.fix),
          .edit = edit_of(rule, line, imported),
          .conflict = rule.ends_job ? places_of(rule, imported) : std::string()};
}

// What the engine does about a key that it does not know; none: it is not said.
const UnknownKeys* unknown_under(const Imported& imported, const LedgerLine& line) {
  const auto dialect = imported.read_by.find(line.file);
  const UnknownKeys* best = nullptr;
  if (dialect == imported.read_by.end()) return best;
  for (const UnknownKeys& keys : dialect->second->unknown) {
    if (!line.setting.path.starts_with(keys.under)) continue;
    if (best == nullptr || keys.under.size() > best->under.size()) best = &keys;
  }
  return best;
}

LintFinding unknown_key(const LedgerLine& line, const Imported& imported) {
  LintFinding finding{.code = "PL001",
                      .name = "unknown-key",
                      .severity = line.what.empty() ? "advice" : "warning",
                      .file = line.file,
                      .line = line.setting.line,
                      .message = "'" + line.setting.path + "' is not a key that this dialect knows",
                      .fix = {},
                      .edit = {},
                      .conflict = {}};
  if (const UnknownKeys* keys = unknown_under(imported, line)) {
    finding.severity = keys->severity;
    finding.message += ": " + keys->what;
  }
  if (line.what.empty()) return finding;
  finding.fix = "'" + line.what + "' is the nearest that it knows";
  finding.edit = {.kind = LintEdit::Kind::key,
                  .line = line.setting.line,
                  .setting = line.setting,
                  .key = line.what,
                  .value = {}};
  return finding;
}

// A key without a value says nothing, but for an engine that does not start with it.
bool says_nothing(const LedgerLine& line, const Imported& imported) {
  const UnknownKeys* keys = unknown_under(imported, line);
  return line.setting.value.empty() && (keys == nullptr || keys->severity != "error");
}

// What one source's dialect says of a word that the other source says differently; null: nothing.
const MustAgree* agreement_of(const Imported& imported, const LedgerLine& one,
                              const LedgerLine& other) {
  const auto own = imported.read_by.find(one.file);
  const auto others = imported.read_by.find(other.file);
  if (own == imported.read_by.end() || others == imported.read_by.end()) return nullptr;
  const std::string name = others->second->name.substr(0, others->second->name.find('@'));
  const auto has = [](const std::vector<std::string>& list, const std::string& text) {
    return std::ranges::find(list, text) != list.end();
  };
  const auto& agreements = own->second->must_agree;
  const auto found = std::ranges::find_if(agreements, [&](const MustAgree& agreement) {
    return has(agreement.with, name) && has(agreement.words, one.word) &&
           holds(agreement.when, imported.words);
  });
  return found == agreements.end() ? nullptr : &*found;
}

// The number that a text is, all of it: 1 of "1" and of "1.0".
std::optional<double> number_in(const std::string& text) {
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool say_alike(const LedgerLine& one, const LedgerLine& other) {
  const auto number = number_in(one.said);
  return one.said == other.said || (number && number == number_in(other.said));
}

// Of a line that says another thing than the one before.
LintFinding said_twice(const LedgerLine& before, const LedgerLine& line, const Imported& imported) {
  const MustAgree* agreement = agreement_of(imported, line, before);
  if (agreement == nullptr) agreement = agreement_of(imported, before, line);
  const std::string taken = line.turn < before.turn ? "that one is taken" : "this one is taken";
  return {.code = "PL002",
          .name = "said-twice",
          .severity = agreement == nullptr ? "warning" : "error",
          .file = line.file,
          .line = line.setting.line,
          .message = "'" + line.setting.path + "' is " + line.setting.value + " here, and '" +
                     before.setting.path + "' is " + before.setting.value + " at " + before.file +
                     ":" + std::to_string(before.setting.line) + "; " +
                     (agreement == nullptr ? taken : agreement->what),
          .fix = "leave one of them out",
          .edit = {},
          .conflict = {}};
}

// Keys that say one thing differently.
void find_twice_said(const Imported& imported, std::vector<LintFinding>& findings) {
  std::map<std::string, const LedgerLine*> first;
  for (const LedgerLine& line : imported.ledger) {
    if (line.fate != Fate::understood || line.said.empty()) continue;
    const auto [found, is_new] = first.emplace(line.what, &line);
    const LedgerLine& before = *found->second;
    if (is_new || say_alike(before, line)) continue;
    if (exclude_each_other(before.setting, line.setting)) continue;
    findings.push_back(said_twice(before, line, imported));
  }
}

// Lists of options that a script forgets: one finding for each.
void find_unused_lists(const Imported& imported, std::vector<LintFinding>& findings) {
  std::set<std::pair<std::string, std::string>> told;
  for (const LedgerLine& line : imported.ledger) {
    const std::string& name = line.setting.unused_list;
    if (name.empty() || !told.emplace(line.file, name).second) continue;
    findings.push_back({.code = "PL005",
                        .name = "unused-options",
                        .severity = "warning",
                        .file = line.file,
                        .line = line.setting.line,
                        .message = "'" + name + "' holds options, and no command gets them",
                        .fix = "give ${" + name + "} to the command, or leave it out",
                        .edit = {},
                        .conflict = {}});
  }
}

// Sizes of another model than the one that is named.
void find_other_sizes(const Imported& imported, std::vector<LintFinding>& findings) {
  for (const LedgerLine& line : imported.ledger) {
    if (line.other_size.empty()) continue;
    findings.push_back({.code = "PL007",
                        .name = "other-model",
                        .severity = "warning",
                        .file = line.file,
                        .line = line.setting.line,
                        .message = "'" + line.setting.path + "' is " + line.setting.value +
                                   ", and " + line.other_size +
                                   " is taken: the job's model is another one",
                        .fix = "give --model the config.json of a model of these sizes",
                        .edit = {},
                        .conflict = {}});
  }
}

// Options on the lines below a command that has ended: one finding for each command.
void find_cut_off_options(const Imported& imported, std::vector<LintFinding>& findings) {
  std::set<std::pair<std::string, std::size_t>> told;
  for (const LedgerLine& line : imported.ledger) {
    const std::size_t end = line.setting.ended_at;
    if (end == 0 || !told.emplace(line.file, end).second) continue;
    findings.push_back({.code = "PL006",
                        .name = "cut-off-options",
                        .severity = "error",
                        .file = line.file,
                        .line = end,
                        .message = "the command ends here, and '" + line.setting.path +
                                   "' at line " + std::to_string(line.setting.line) +
                                   " is given to nothing",
                        .fix = "end the line in a backslash, with no blank or comment behind it",
                        .edit = {},
                        .conflict = {}});
  }
}

// Whether a comment names the code: "placet: ignore=PL003,PL012".
bool names_code(const std::string& comment, const std::string& code) {
  constexpr std::string_view kMark = "placet: ignore=";
  const std::size_t at = comment.find(kMark);
  if (at == std::string::npos) return false;
  const std::size_t begin = at + kMark.size();
  const std::size_t end = std::min(comment.find_first_of(" \t\r", begin), comment.size());
  return ("," + comment.substr(begin, end - begin) + ",").find("," + code + ",") !=
         std::string::npos;
}

// Whether the comment on its line names a finding's code.
bool is_ignored(const LintFinding& finding, const Imported& imported) {
  const auto comments = imported.comments.find(finding.file);
  if (comments == imported.comments.end() || finding.line == 0) return false;
  if (finding.line > comments->second.size()) return false;
  return names_code(comments->second[finding.line - 1], finding.code);
}

bool asks_for_one_of(const std::set<std::string>& words, const LintRule& rule) {
  return std::ranges::any_of(rule.when,
                             [&](const WordCondition& c) { return words.contains(c.word); });
}

// Rules that are in the program have files too, for `placet explain`.
bool is_in_program(const LintRule& rule) {
  static const std::set<std::string, std::less<>> kCodes = {"PL001", "PL002", "PL005",
                                                            "PL006", "PL007", "PL100"};
  return kCodes.contains(rule.code);
}

}  // namespace

std::vector<LintFinding> without_ignored(std::vector<LintFinding> findings,
                                         const Imported& imported) {
  std::erase_if(findings, [&](const LintFinding& f) { return is_ignored(f, imported); });
  return findings;
}

std::vector<LintFinding> lint(const Catalog& catalog, const Imported& imported) {
  std::vector<LintFinding> findings;
  for (const LedgerLine& line : imported.ledger) {
    if (line.fate != Fate::unknown || says_nothing(line, imported)) continue;
    findings.push_back(unknown_key(line, imported));
  }
  find_twice_said(imported, findings);
  find_unused_lists(imported, findings);
  find_cut_off_options(imported, findings);
  find_other_sizes(imported, findings);
  const std::set<std::string> undecided = words_of_undecided(imported);
  const auto rules = load_rules(catalog);
  for (const LintRule& rule : *rules) {
    const LedgerLine* line = line_of(imported, rule.at);
    if (is_in_program(rule) || line == nullptr || !holds(rule.when, imported.words)) continue;
    if (asks_for_one_of(undecided, rule)) continue;
    findings.push_back(finding_at(*line, rule, imported));
  }
  findings = without_ignored(std::move(findings), imported);
  std::sort(findings.begin(), findings.end(), [](const LintFinding& a, const LintFinding& b) {
    return std::tie(a.file, a.line, a.code) < std::tie(b.file, b.line, b.code);
  });
  return findings;
}

}  // namespace placet
