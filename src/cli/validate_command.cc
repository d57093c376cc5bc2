// placet validate TABLE: predictions beside measured runs.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>

#include "catalog/table.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/output.h"
#include "report/validation.h"
#include "units/error.h"
#include "validate/validate.h"

namespace placet {
namespace {

struct ValidateCall {
  std::string table;
  std::string engine;
  std::string tolerance;
  std::vector<std::string> where;
  std::string half;
  bool constants = false;
  std::string commands;
  bool json = false;
  std::string html;
};

constexpr unsigned kMostThreads = 64;

// A line that is written over again, and only for people.
void show_progress(std::int64_t done, std::int64_t all) {
  constexpr std::int64_t kEvery = 50;
  if (isatty(STDERR_FILENO) == 0 || (done % kEvery != 0 && done != all)) return;
  std::fprintf(stderr, "\r%lld of %lld rows%s", static_cast<long long>(done),
               static_cast<long long>(all), done == all ? "\r\033[K" : "");
}

ValidateOptions options_of(const ValidateCall& call) {
  const unsigned processors = std::thread::hardware_concurrency();
  ValidateOptions options{.threads = static_cast<int>(std::clamp(processors, 1U, kMostThreads)),
                          .progress = show_progress};
  if (!call.engine.empty()) options.engine = call.engine;
  if (!call.commands.empty()) options.commands = call.commands;
  if (call.half == "even") options.half = Half::even;
  if (call.half == "odd") options.half = Half::odd;
  for (const std::string& condition : call.where) {
    options.where.push_back(parse_condition(condition, "--where"));
  }
  return options;
}

// The files that commands name, and the lines, each under its row.
std::string commands_text(const Validation& validation, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const auto& [name, text] : validation.command_files) {
    write_file((std::filesystem::path(folder) / name).string(), text, "--commands");
  }
  std::string lines;
  for (const RowCommand& command : validation.commands) {
    lines += "# " + command.row_id + "\n" + command.line + "\n";
  }
  return lines;
}

int validate_table(const ValidateCall& call) {
  ValidationReport report{.constants = call.constants};
  if (!call.tolerance.empty()) {
    report.tolerance = number_of(call.tolerance, {.least = 0, .greatest = 1e6}, "--tolerance");
  }
  const Table table = read_table(call.table);
  const Validation validation = validate(called_catalog(), table, options_of(call));
  if (!call.html.empty()) write_file(call.html, validation_html(validation, report), "--html");
  if (!call.commands.empty()) {
    const std::string lines = commands_text(validation, call.commands);
    if (!call.json) print(lines);
    if (!call.json) return is_within(validation, report) ? kGood : kBad;
  }
  print(call.json ? validation_json(validation, report)
                  : validation_text(validation, report, output_style()));
  return is_within(validation, report) ? kGood : kBad;
}

}  // namespace

void add_validate_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<ValidateCall>();
  CLI::App* command = program.add_subcommand(
      "validate", "Predictions beside a table of measured runs, with errors by group");
  command->add_option("TABLE", call->table, "A table with the columns of SCHEMA.md")->required();
  command
      ->add_option("--engine", call->engine,
                   "Profile for every row, instead of what its framework means")
      ->type_name("NAME[@VERSION]");
  command
      ->add_option("--tolerance", call->tolerance,
                   "Largest mean error, as a fraction; above it the exit status is 1")
      ->type_name("X");
  command->add_option("--where", call->where, "Only rows whose cell matches; may be repeated")
      ->type_name("COLUMN=TEXT")
      ->expected(1)
      ->take_all();
  command
      ->add_option("--half", call->half,
                   "Only every second of those rows, beginning with the first (even) or second")
      ->check(CLI::IsMember({"even", "odd"}))
      ->type_name("even|odd");
  command
      ->add_flag("--constants", call->constants,
                 "List every fact that was used, its source and the rows it touches")
      ->disable_flag_override();
  command->add_flag("--json", call->json, "Print one JSON document")->disable_flag_override();
  command
      ->add_option("--commands", call->commands,
                   "Print each row as a `placet simulate` line; models and clusters without a name "
                   "become files in DIR")
      ->type_name("DIR");
  command->add_option("--html", call->html, "Write a self-contained page")->type_name("FILE");
  command->footer(
      "\nExamples:\n"
      "  placet validate data/validation/tables/zero_model_states.csv\n"
      "  placet validate runs.csv --where framework=torchtitan --where \"status=o*\" --json\n"
      "  placet validate runs.csv --tolerance 0.1 --constants\n");
  command->callback([call, &action] { action = [call] { return validate_table(*call); }; });
}

}  // namespace placet
