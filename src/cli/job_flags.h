// The flags of a job, the same for every subcommand that takes one.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "call/job_flags.h"

namespace placet {

/// How results are asked for.
struct ResultFlags {
  bool json = false;
  std::string html;
  std::string explain;
  CLI::Option* explain_option = nullptr;
};

/// Adds MODEL and all flags of a job. `flags` must outlive the parse.
void add_job_flags(CLI::App& command, JobFlags& flags);

/// Adds the flags that say what is trained, without those of placement and batch.
void add_model_flags(CLI::App& command, JobFlags& flags);

/// Adds --json, --html and, where terms can be shown, --explain.
void add_result_flags(CLI::App& command, ResultFlags& flags);
void add_explain_flag(CLI::App& command, ResultFlags& flags);

/// What --explain asks for; empty: it was not given. Throws InputError where it has no terms.
std::string what_to_explain(const ResultFlags& flags);

/// A command on the request of its flags, to be run when these are read. What it finds wrong with a
/// word of the job file is said of the file. `flags` must outlive it.
std::function<int()> on_request(const JobFlags& flags,
                                std::function<int(const JobRequest&)> command,
                                AskedOf asked = AskedOf::all);

}  // namespace placet
