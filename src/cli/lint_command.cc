// placet lint SOURCES: what is wrong in an engine's configuration.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "catalog/reader.h"
#include "cli/command.h"
#include "cli/import_flags.h"
#include "cli/output.h"

namespace placet {
namespace {

struct LintCall {
  ImportFlags flags;
  std::string format = "text";
};

Json document_of(const std::vector<LintFinding>& findings) {
  Json document{{"schema", "placet.lint/1"}, {"findings", Json::array()}};
  for (const LintFinding& finding : findings) {
    document["findings"].push_back({{"code", finding.code},
                                    {"name", finding.name},
                                    {"severity", finding.severity},
                                    {"file", finding.file},
                                    {"line", finding.line},
                                    {"message", finding.message},
                                    {"fix", finding.fix}});
  }
  return document;
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

int lint_sources(const LintCall& call) {
  const std::vector<LintFinding> findings = import_of(call.flags).findings;
  if (call.flags.json || call.format == "json") {
    print(document_of(findings).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    print(call.format == "github" ? annotations_of(findings) : text_of(findings));
  }
  const bool is_bad = std::any_of(findings.begin(), findings.end(),
                                  [](const LintFinding& f) { return f.severity == "error"; });
  return is_bad ? kBad : kGood;
}

}  // namespace

void add_lint_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<LintCall>();
  CLI::App* command = program.add_subcommand("lint", "What is wrong in an engine's configuration");
  add_import_flags(*command, call->flags);
  command->add_option("--format", call->format, "How findings are printed")
      ->check(CLI::IsMember({"text", "json", "github"}));
  command->footer(
      "\nExamples:\n"
      "  placet lint train.toml --world-size 64\n"
      "  placet lint run.args --format github\n");
  command->callback([call, &action] { action = [call] { return lint_sources(*call); }; });
}

}  // namespace placet
