// placet import SOURCES: an engine's configuration as a job, and what became of each of its keys.
#include <fmt/format.h>

#include <memory>

#include "call/configurations.h"
#include "cli/command.h"
#include "cli/import_flags.h"
#include "cli/output.h"

namespace placet {
namespace {

struct ImportCall {
  ImportFlags flags;
  std::string output;
  bool strict = false;
};

std::string ledger_text(const Imported& imported) {
  std::string text;
  for (const LedgerLine& line : imported.ledger) {
    std::string what = name_of(line.fate);
    if (!line.other_size.empty()) what += ", but " + line.other_size + " is taken";
    if (line.fate == Fate::unknown && !line.what.empty()) {
      what += "; nearest key: " + line.what;
    } else if (!line.what.empty()) {
      what += ": " + line.what;
    }
    text +=
        fmt::format("  {}:{}  {} = {}  [{}]\n", line.file, line.setting.line,
                    printable(line.setting.path), printable(line.setting.value), printable(what));
  }
  return text;
}

// "192, 208, ..., 2048", of which the job has the last.
std::string ramp_text(const std::vector<long long>& batches) {
  if (batches.size() < 2) return "";
  const std::string middle = batches.size() > 3 ? ", ..." : "";
  const std::string second = batches.size() > 2 ? ", " + std::to_string(batches[1]) : "";
  return fmt::format("  batches: {}{}{}, {}: {} jobs, each with its --global-batch\n",
                     batches.front(), second, middle, batches.back(), batches.size());
}

std::string text_of(const Imported& imported) {
  std::string text = "dialect ";
  for (const std::string& name : imported.dialects) {
    text += (&name == imported.dialects.data() ? "" : ", ") +
            (name.empty() ? std::string("not known") : name);
  }
  text += "\n\nJob\n";
  for (const auto& [word, value] : imported.job) {
    text += fmt::format("  {} = {}\n", word, value);
  }
  for (const MissingFact& fact : imported.missing) {
    text += fmt::format("  missing: {}; give {}\n", fact.what, fact.flag);
  }
  return text + ramp_text(imported.batch_ramp) + "\nLedger\n" + ledger_text(imported);
}

int import_job(const ImportCall& call) {
  const Imported imported = import_of(call.flags);
  refuse_conflicts(imported);
  if (!call.output.empty()) write_file(call.output, job_text(imported), "-o");
  print(call.flags.json ? import_json(imported) : text_of(imported));
  return imported.missing.empty() && !(call.strict && is_lossy(imported)) ? kGood : kBad;
}

}  // namespace

void add_import_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<ImportCall>();
  CLI::App* command = program.add_subcommand(
      "import", "An engine's configuration as a job, and what became of each key");
  add_import_flags(*command, call->flags);
  command->add_option("-o,--output", call->output, "Write the job here (TOML)");
  command->add_flag("--strict", call->strict, "Fail where a key that has an effect was lost")
      ->disable_flag_override();
  command->footer(
      "\nExamples:\n"
      "  placet import llama3_70b.toml --world-size 64 -o job.toml\n"
      "  placet import llama3_70b.toml --cluster h100-sxm:8 --strict --json\n");
  command->callback([call, &action] { action = [call] { return import_job(*call); }; });
}

}  // namespace placet
