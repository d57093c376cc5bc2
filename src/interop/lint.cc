#include "interop/lint.h"

#include <algorithm>
#include <tuple>

#include "catalog/reader.h"
#include "interop/rule_reader.h"

namespace placet {
namespace {

// A rule over words. It is said at the first setting of one of `at` that the sources hold.
struct LintRule {
  std::string code, name, severity, message, fix;
  std::vector<std::string> at;
  std::vector<WordCondition> when;
};

LintRule load_rule(const Catalog& catalog, const std::string& file) {
  const Document document = open_document(file_of(catalog, "lint", "rule", file, "lint"));
  const Reader reader(document);
  reader.allow({"schema", "code", "name", "severity", "at", "when", "message", "fix", "source"});
  LintRule rule{.code = reader.at("code").text(),
                .name = reader.at("name").text(),
                .severity = reader.at("severity").text(),
                .message = reader.at("message").text(),
                .fix = reader.at("fix").text(),
                .at = {},
                .when = read_conditions(reader.at("when"))};
  reader.at("source").text();
  for (const Reader& item : reader.at("at").items()) rule.at.push_back(item.text());
  return rule;
}

const LedgerLine* line_of(const Imported& imported, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    for (const LedgerLine& line : imported.ledger) {
      if (line.fate == Fate::understood && line.what == word) return &line;
    }
  }
  return nullptr;
}

LintFinding finding_at(const LedgerLine& line, const LintRule& rule, const Words& words) {
  return {.code = rule.code,
          .name = rule.name,
          .severity = rule.severity,
          .file = line.file,
          .line = line.setting.line,
          .message = filled(rule.message, words).value_or(rule.message),
          .fix = filled(rule.fix, words).value_or(rule.fix)};
}

LintFinding unknown_key(const LedgerLine& line) {
  return {.code = "PL001",
          .name = "unknown-key",
          .severity = line.what.empty() ? "advice" : "warning",
          .file = line.file,
          .line = line.setting.line,
          .message = "'" + line.setting.path + "' is not a key that this dialect knows",
          .fix = line.what.empty() ? "" : "'" + line.what + "' is the nearest that it knows"};
}

// Keys of the same source that say one thing differently.
void find_twice_said(const Imported& imported, std::vector<LintFinding>& findings) {
  std::map<std::string, const LedgerLine*> first;
  for (const LedgerLine& line : imported.ledger) {
    if (line.fate != Fate::understood) continue;
    const auto [found, is_new] = first.emplace(line.what, &line);
    const LedgerLine& before = *found->second;
    if (is_new || before.setting.value == line.setting.value) continue;
    findings.push_back({.code = "PL002",
                        .name = "said-twice",
                        .severity = "warning",
                        .file = line.file,
                        .line = line.setting.line,
                        .message = "'" + line.setting.path + "' is " + line.setting.value +
                                   " here, and '" + before.setting.path + "' is " +
                                   before.setting.value + " at " + before.file + ":" +
                                   std::to_string(before.setting.line) + "; this one is taken",
                        .fix = "leave one of them out"});
  }
}

bool is_ignored(const LintFinding& finding, const std::vector<Source>& sources) {
  for (const Source& source : sources) {
    if (source.file != finding.file || finding.line > source.comments.size()) continue;
    if (finding.line == 0) continue;
    const std::string& comment = source.comments[finding.line - 1];
    if (comment.find("placet: ignore=" + finding.code) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

std::vector<LintFinding> lint(const Catalog& catalog, const std::vector<Source>& sources,
                              const Imported& imported) {
  std::vector<LintFinding> findings;
  for (const LedgerLine& line : imported.ledger) {
    if (line.fate == Fate::unknown) findings.push_back(unknown_key(line));
  }
  find_twice_said(imported, findings);
  for (const std::string& name : names_in(catalog, "lint")) {
    const LintRule rule = load_rule(catalog, name);
    const LedgerLine* line = line_of(imported, rule.at);
    if (line == nullptr || !holds(rule.when, imported.words)) continue;
    findings.push_back(finding_at(*line, rule, imported.words));
  }
  std::erase_if(findings, [&](const LintFinding& f) { return is_ignored(f, sources); });
  std::sort(findings.begin(), findings.end(), [](const LintFinding& a, const LintFinding& b) {
    return std::tie(a.file, a.line, a.code) < std::tie(b.file, b.line, b.code);
  });
  return findings;
}

}  // namespace placet
