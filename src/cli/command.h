// The subcommands of placet. Each is a straight line: load the job, derive, report.
//
// A command adds its flags to the program and, when it is the one that was called, sets what is to
// be done. To add a command: one function here, one file, one line in program.cc.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "cli/program.h"  // exit statuses

namespace placet {

struct ListKind;  // call/lists.h

/// What a call amounts to; gives kGood or kBad.
using Action = std::function<int()>;

void add_model_command(CLI::App& program, Action& action);
void add_derive_command(CLI::App& program, Action& action);
void add_compare_command(CLI::App& program, Action& action);
void add_simulate_command(CLI::App& program, Action& action);
void add_plan_command(CLI::App& program, Action& action);
void add_bugs_command(CLI::App& program, Action& action);
void add_completion_command(CLI::App& program, Action& action);
void add_validate_command(CLI::App& program, Action& action);
void add_lower_command(CLI::App& program, Action& action);
void add_check_command(CLI::App& program, Action& action);
void add_verify_command(CLI::App& program, Action& action);
void add_run_command(CLI::App& program, Action& action);
void add_reshard_command(CLI::App& program, Action& action);
void add_data_command(CLI::App& program, Action& action);
void add_explain_command(CLI::App& program, Action& action);
void add_import_command(CLI::App& program, Action& action);
void add_lint_command(CLI::App& program, Action& action);
void add_diff_command(CLI::App& program, Action& action);
void add_export_command(CLI::App& program, Action& action);
void add_serve_command(CLI::App& program, Action& action);
void add_audit_command(CLI::App& program, Action& action);
/// A list of the catalogue under its own name: `placet models`, `placet engines`.
void add_list_command(CLI::App& program, const ListKind& kind, Action& action);

}  // namespace placet
