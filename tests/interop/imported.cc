#include "imported.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "interop/lint.h"

namespace placet {

Imported import_text(SourceForm form, const std::string& text, const Words& given) {
  return import_sources(
      find_catalog(), {.sources = {parse_source(text, form, "f")}, .dialect = {}, .given = given});
}

Imported import_texts(const std::vector<std::pair<std::string, std::string>>& texts,
                      const Words& given) {
  ImportRequest request{.sources = {}, .dialect = {}, .given = given};
  const SourceTexts named(texts.begin(), texts.end());
  for (const auto& [name, text] : texts) request.sources.push_back(source_of(named, name));
  return import_sources(find_catalog(), request);
}

std::string said_of(const Imported& imported, const std::string& word) {
  const auto found = imported.job.find(word);
  return found == imported.job.end() ? std::string() : found->second;
}

bool asks_for(const Imported& imported, const std::string& part) {
  return std::ranges::any_of(imported.missing, [&](const MissingFact& fact) {
    return fact.what.find(part) != std::string::npos || fact.flag.find(part) != std::string::npos;
  });
}

Fate fate_of_key(const Imported& imported, const std::string& path) {
  for (const LedgerLine& line : imported.ledger) {
    if (line.setting.path == path) return line.fate;
  }
  ADD_FAILURE() << "no line of " << path;
  return Fate::unknown;
}

bool is_found(const Imported& imported, const std::string& code) {
  const auto findings = lint(find_catalog(), imported);
  return std::ranges::find(findings, code, &LintFinding::code) != findings.end();
}

}  // namespace placet
