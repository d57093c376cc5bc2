// placet lint SOURCES: what is wrong in an engine's configuration.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>

#include "call/configurations.h"
#include "catalog/reader.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/import_flags.h"
#include "cli/output.h"
#include "interop/lint_fix.h"
#include "units/error.h"

namespace placet {
namespace {

struct LintCall {
  ImportFlags flags;
  std::string format = "text";
  bool fix = false;
  bool each = false;
};

// Writes what findings mend into their sources; what was changed, as the lines of a diff.
std::string write_fixes(const std::vector<LintFinding>& findings,
                        const std::vector<std::string>& files) {
  std::string diff;
  for (const std::string& file : files) {
    if (file == "-") {
      throw InputError({.where = "--fix",
                        .problem = "writes into files, and standard input is none",
                        .allowed = "the name of a file"});
    }
    if (std::ranges::find(findings, file, &LintFinding::file) == findings.end()) continue;
    const FixedText fixed = mended_text(file, read_source_text(file), findings);
    if (fixed.changes.empty()) continue;
    write_file(file, fixed.text, "--fix");
    for (const ChangedLine& change : fixed.changes) {
      diff += fmt::format("{}:{}\n- {}\n", file, change.line, change.before);
      std::istringstream lines(change.after);
      for (std::string line; std::getline(lines, line);) diff += "+ " + line + "\n";
    }
  }
  return diff;
}

std::string text_of(const std::vector<LintFinding>& findings) {
  std::string text;
  for (const LintFinding& finding : findings) {
    text += finding.file + ":" + std::to_string(finding.line) + ": " + finding.severity + " " +
            finding.code + " " + finding.name + ": " + finding.message + "\n";
    if (!finding.fix.empty()) text += "  fix: " + finding.fix + "\n";
  }
  return text.empty() ? "no findings\n" : text;
}

// Annotations of a workflow: one line each, with what ends a line escaped.
std::string annotations_of(const std::vector<LintFinding>& findings) {
  std::string text;
  for (const LintFinding& finding : findings) {
    std::string message = finding.message;
    for (std::size_t at = 0; (at = message.find('%', at)) != std::string::npos; at += 3) {
      message.replace(at, 1, "%25");
    }
    for (std::size_t at = 0; (at = message.find('\n', at)) != std::string::npos; at += 3) {
      message.replace(at, 1, "%0A");
    }
    const std::string level = finding.severity == "advice" ? "notice" : finding.severity;
    text += fmt::format("::{} file={},line={},title={} {}::{}\n", level, finding.file, finding.line,
                        finding.code, finding.name, message);
  }
  return text;
}

// Level of a finding as code scanners spell it.
std::string level_of(const LintFinding& finding) {
  return finding.severity == "advice" ? "note" : finding.severity;
}

// SARIF 2.1.0, the form that code scanners take: one run, a rule for each code found.
Json sarif_of(const std::vector<LintFinding>& findings) {
  std::map<std::string, std::string> names;
  Json results = Json::array();
  for (const LintFinding& finding : findings) {
    names[finding.code] = finding.name;
    const std::string fix = finding.fix.empty() ? "" : " (fix: " + finding.fix + ")";
    // Lines count from 1; what is of no line is of the file.
    Json place{{"artifactLocation", {{"uri", finding.file}}}};
    if (finding.line > 0) place["region"] = {{"startLine", finding.line}};
    results.push_back({{"ruleId", finding.code},
                       {"level", level_of(finding)},
                       {"message", {{"text", finding.message + fix}}},
                       {"locations", {{{"physicalLocation", place}}}}});
  }
  Json rules = Json::array();
  for (const auto& [code, name] : names) rules.push_back({{"id", code}, {"name", name}});
  return {
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs",
       {{{"tool", {{"driver", {{"name", "placet"}, {"rules", rules}}}}}, {"results", results}}}}};
}

struct Linted {
  std::vector<LintFinding> findings;
  std::vector<std::string> refused;  // why a file could not be checked, where others were
};

// One file by itself; nothing where it is of no dialect.
std::vector<LintFinding> findings_of_file(const Catalog& catalog, const LintCall& call,
                                          const std::string& file) {
  const Source source = source_of(call.flags.words.texts, file);
  const bool is_known = !call.flags.words.dialect.empty() ||
                        !guess_dialect(catalog, *dialect_heads(catalog), source).empty();
  if (!is_known) return {};
  SourceWords words = call.flags.words;
  words.sources = {file};
  return linted_of(catalog, words);
}

// Of the sources together, as one job; or of each alone, and what one of them is refused for keeps
// no other from being checked.
Linted linted(const LintCall& call) {
  const Catalog catalog = called_catalog();
  if (!call.each) return {linted_of(catalog, call.flags.words), {}};
  Linted all;
  for (const std::string& file : call.flags.words.sources) {
    try {
      std::ranges::move(findings_of_file(catalog, call, file), std::back_inserter(all.findings));
    } catch (const InputError& error) {
      all.refused.emplace_back(error.what());
    }
  }
  return all;
}

void print_findings(const LintCall& call, const Linted& all) {
  const std::string format = call.flags.json ? "json" : call.format;
  if (format == "json") print(lint_json(all.findings));
  if (format == "sarif") {
    print(sarif_of(all.findings).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  if (format == "github") print(annotations_of(all.findings));
  const bool is_silent = all.findings.empty() && !all.refused.empty();  // of what was refused
  if (format == "text" && !is_silent) print(text_of(all.findings));
  for (const std::string& why : all.refused) print_warning(why);
}

int lint_sources(const LintCall& call) {
  Linted all = linted(call);
  if (call.fix) {
    const std::string diff = write_fixes(all.findings, call.flags.words.sources);
    if (!diff.empty() && call.format == "text" && !call.flags.json) print(diff);
    all = linted(call);
  }
  print_findings(call, all);
  if (!all.refused.empty()) return kWrongInput;
  return has_error(all.findings) ? kBad : kGood;
}

}  // namespace

void add_lint_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<LintCall>();
  CLI::App* command = program.add_subcommand("lint", "What is wrong in an engine's configuration");
  add_import_flags(*command, call->flags);
  command->add_option("--format", call->format, "How findings are printed")
      ->check(CLI::IsMember({"text", "json", "sarif", "github"}));
  command->add_flag("--fix", call->fix, "Write into the sources what can be mended, and print it")
      ->disable_flag_override();
  command
      ->add_flag("--each", call->each, "Check each file on its own; skip files of no known dialect")
      ->disable_flag_override();
  command->footer(
      "\nExamples:\n"
      "  placet lint train.toml --world-size 64\n"
      "  placet lint run.slurm ds_config.json config.json --fix\n"
      "  placet lint run.args --format github\n"
      "  ssh login cat run.slurm | placet lint -\n");
  command->callback([call, &action] { action = [call] { return lint_sources(*call); }; });
}

}  // namespace placet
