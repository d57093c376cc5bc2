#include "call/configurations.h"

#include <algorithm>
#include <iterator>

#include "catalog/reader.h"

namespace placet {
namespace {

// Files may hold bytes that are no text.
std::string printed_document(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool is_error(const LintFinding& finding) { return finding.severity == "error"; }

}  // namespace

Imported read_of(const Catalog& catalog, const SourceWords& words) {
  Imported imported = imported_of(catalog, words);
  require_all_read(imported);
  return imported;
}

bool has_error(const std::vector<LintFinding>& findings) {
  return std::ranges::any_of(findings, is_error);
}

std::vector<LintFinding> linted_of(const Catalog& catalog, const SourceWords& words) {
  const Imported imported = read_of(catalog, words);
  std::vector<LintFinding> findings = imported.findings;
  if (has_error(findings)) return findings;
  const std::vector<LintFinding> job = findings_of_job(catalog, imported);
  findings.insert(findings.end(), job.begin(), job.end());
  return findings;
}

FixedText mended_text(const std::string& file, const ConfigurationText& source,
                      const std::vector<LintFinding>& findings) {
  std::vector<LintFinding> own;
  std::ranges::copy_if(findings, std::back_inserter(own),
                       [&](const LintFinding& finding) { return finding.file == file; });
  return fixed_text(source.text, source.form, own);
}

SourceTexts mended_texts(const SourceWords& words, const std::vector<LintFinding>& findings) {
  SourceTexts mended;
  for (const auto& [name, text] : words.texts) {
    FixedText fixed = mended_text(name, source_text_of(words.texts, name), findings);
    if (!fixed.changes.empty()) mended[name] = std::move(fixed.text);
  }
  return mended;
}

std::string import_json(const Imported& imported) {
  Json document{{"schema", "placet.import/1"}, {"dialects", imported.dialects}};
  document["job"] = Json(imported.job);
  document["missing"] = Json::array();
  for (const MissingFact& fact : imported.missing) {
    document["missing"].push_back({{"what", fact.what}, {"flag", fact.flag}});
  }
  if (!imported.batch_ramp.empty()) document["batches"] = imported.batch_ramp;
  document["ledger"] = Json::array();
  for (const LedgerLine& line : imported.ledger) {
    document["ledger"].push_back({{"file", line.file},
                                  {"line", line.setting.line},
                                  {"key", line.setting.path},
                                  {"value", line.setting.value},
                                  {"fate", name_of(line.fate)},
                                  {"what", line.what}});
  }
  return printed_document(document);
}

std::string lint_json(const std::vector<LintFinding>& findings, const SourceTexts& mended) {
  Json document{{"schema", "placet.lint/1"}, {"findings", Json::array()}};
  for (const LintFinding& finding : findings) {
    document["findings"].push_back({{"code", finding.code},
                                    {"name", finding.name},
                                    {"severity", finding.severity},
                                    {"file", finding.file},
                                    {"line", finding.line},
                                    {"message", finding.message},
                                    {"fix", finding.fix},
                                    {"fixable", finding.edit.kind != LintEdit::Kind::none}});
  }
  for (const auto& [name, text] : mended) {
    document["mended"].push_back({{"file", name}, {"text", text}});
  }
  return printed_document(document);
}

std::string export_json(const Exported& exported) {
  Json document{{"schema", "placet.export/1"}, {"dialect", exported.dialect}};
  document["files"] = Json::array();
  // What does not say the job is no file of it.
  if (exported.unsaid.empty()) {
    for (const ExportedFile& file : exported.files) {
      document["files"].push_back({{"name", file.name}, {"text", file.text}});
    }
  }
  document["beside"] = Json(exported.beside);
  document["unsaid"] = Json::array();
  for (const JobDifference& word : exported.unsaid) {
    document["unsaid"].push_back({{"word", word.word}, {"job", word.one}, {"nearest", word.other}});
  }
  return document.dump(2) + "\n";
}

}  // namespace placet
