// The flags of a job, the same for every subcommand that takes one.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "catalog/job.h"

namespace placet {

/// The words as they stand on the command line.
struct JobFlags {
  std::string model, cluster, sequence, lengths, global_batch, micro_batch, recompute, precision,
      optimizer, lora, loss, clip, routing, balance_loss, engine, job_file;
  std::vector<std::string> placements;
  std::vector<std::string> freeze;
  std::vector<std::string> ignore_keys;
};

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

/// Refuses a second placement, for commands that take one.
void require_one_placement(const JobFlags& flags);

/// The request that flags and job file make together. Throws InputError for numbers that are none.
/// Of several placements the first is taken; compare goes through them itself.
JobRequest request_of(const JobFlags& flags);

/// A command on the request of its flags, to be run when these are read. What it finds wrong with a
/// word of the job file is said of the file. `flags` must outlive it.
std::function<int()> on_request(const JobFlags& flags,
                                std::function<int(const JobRequest&)> command);

/// Refuses a model of which nothing but a count of parameters is known: `what` needs shapes.
void require_shapes(const Job& job, std::string_view what);

}  // namespace placet
