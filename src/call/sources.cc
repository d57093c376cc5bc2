#include "call/sources.h"

#include <array>

#include "catalog/cluster_catalog.h"
#include "catalog/meant.h"
#include "derive/rules.h"
#include "interop/diff.h"
#include "interop/lint.h"
#include "units/error.h"

namespace placet {
namespace {

void give(Words& words, const char* word, const std::string& value) {
  if (!value.empty()) words[word] = value;
}

void give_whole(Words& words, const char* word, const std::string& value) {
  if (value.empty()) return;
  const auto number = whole_number(value);
  if (!number || *number < 1) {
    throw InputError({.where = std::string("--") + word,
                      .value = value,
                      .problem = {},
                      .allowed = "a whole number from 1",
                      .nearest = {},
                      .excerpt = {}});
  }
  words[word] = value;
}

// "tp=8"
void give_word(Words& words, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw InputError({.where = "--set",
                      .value = text,
                      .problem = "is no word with a value",
                      .allowed = "WORD=VALUE, such as tp=8",
                      .nearest = {},
                      .excerpt = {}});
  }
  words[text.substr(0, equals)] = text.substr(equals + 1);
}

}  // namespace

Imported imported_of(const Catalog& catalog, const SourceWords& words) {
  if (words.sources.empty()) {
    throw InputError({.where = "SOURCES",
                      .value = {},
                      .problem = "is missing",
                      .allowed = "configuration files and launch scripts",
                      .nearest = {},
                      .excerpt = {}});
  }
  ImportRequest request{.sources = {}, .dialect = words.dialect, .given = {}};
  give(request.given, "model", words.model);
  const std::string cluster = meant_cluster(catalog, words.cluster).text;
  give(request.given, "cluster", cluster);
  give(request.given, "engine", meant_engine(catalog, words.engine).text);
  give(request.given, "placement", words.placement);
  for (const std::string& word : words.set) give_word(request.given, word);
  give_whole(request.given, "world-size", words.world);
  const auto tokens = tokens_in(words.sequence);
  give_whole(request.given, "seq", tokens ? std::to_string(*tokens) : words.sequence);
  give_whole(request.given, "global-batch", words.global_batch);
  give_whole(request.given, "micro-batch", words.micro_batch);
  if (!cluster.empty() && words.world.empty()) {
    const Cluster loaded = load_cluster(catalog, cluster, std::nullopt, "--cluster");
    request.given["world-size"] = std::to_string(devices_of(loaded));
  }
  for (const std::string& name : words.sources) {
    request.sources.push_back(source_of(words.texts, name));
  }
  return import_sources(catalog, request);
}

namespace {

// The first setting of a word that places something, or the first there is.
const LedgerLine* placing_line(const Imported& imported) {
  constexpr std::array kPlacing = {"tp",       "pp",   "cp",    "ep",          "dp",
                                   "dp-shard", "zero", "shard", "global-batch"};
  for (const char* word : kPlacing) {
    for (const LedgerLine& line : imported.ledger) {
      if (line.word == word) return &line;
    }
  }
  return imported.ledger.empty() ? nullptr : &imported.ledger.front();
}

LintFinding realised(const LedgerLine& line, const std::string& severity,
                     const std::string& message, const std::string& cure) {
  return {.code = "PL100",
          .name = "realised-step",
          .severity = severity,
          .file = line.file,
          .line = line.setting.line,
          .message = message,
          .fix = cure,
          .edit = {},
          .conflict = {}};
}

std::string name_of_severity(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::advice:
      return "advice";
  }
  fail_internally("every severity has a name");
}

}  // namespace

std::vector<LintFinding> findings_of_job(const Catalog& catalog, const Imported& imported) {
  const LedgerLine* line = placing_line(imported);
  if (line == nullptr || !imported.missing.empty()) return {};
  std::vector<LintFinding> findings;
  try {
    const Job job = load_job(catalog, request_of_words(imported.job, line->file));
    for (const Finding& finding : check_rules(job)) {
      findings.push_back(realised(*line, name_of_severity(finding.severity),
                                  finding.rule + ": " + finding.message, finding.cure));
    }
  } catch (const InputError& error) {
    findings.push_back(realised(*line, "error", error.what(), error.fault().allowed));
  }
  return without_ignored(std::move(findings), imported);
}

void require_all_read(const Imported& imported) {
  if (imported.unread.empty()) return;
  throw InputError({.where = "--set",
                    .value = *imported.unread.begin(),
                    .problem = "is no word of " + imported.dialects.front(),
                    .allowed = "a word that its file in data/dialects reads"});
}

JobRequest request_of_sources(const Catalog& catalog, const SourceWords& words, AskedOf asked,
                              std::set<std::string>& unread) {
  Imported imported = imported_of(catalog, words);
  unread = imported.unread;
  if (asked == AskedOf::all) {
    job_text(imported);  // refuses what is no job yet, with the flags that complete it
  } else {
    for (const char* word : {"placement", "micro-batch", "recompute"}) imported.job.erase(word);
  }
  JobRequest request = request_of_words(imported.job, words.sources.front());
  request.file = words.sources.front();
  for (const auto& [word, value] : imported.job) request.in_file.insert(word);
  return request;
}

}  // namespace placet
