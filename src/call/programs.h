// What lower, check and verify answer: step programs of jobs or from files, and what is found of
// them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "algebra/verify.h"
#include "call/job_flags.h"
#include "catalog/catalog.h"
#include "check/check.h"
#include "program/program.h"
#include "report/program.h"
#include "report/verdict.h"

namespace placet {

/// What may be accepted though it differs from the training of one device.
inline constexpr const char* kAuxScope = "aux-scope";

/// What is asked of a program. MODEL may name a program file.
struct ProgramRequest {
  JobFlags job;
  int seeds = 2;                      // of verify
  std::vector<std::string> faults;    // put into the program one after the other
  std::vector<std::string> accepted;  // kAuxScope
  bool list_faults = false;           // only tell what each fault matches
  /// Told what the reader of the answer should know.
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

/// The step program of a job.
struct LoweredJob {
  std::string title;  // "gpt2: dp=4:ddp"
  Program program;
  std::string text;
};
LoweredJob lowered_of(const Catalog& catalog, const JobRequest& request);

/// What was asked for of a program, before any verdict.
struct AskedProgram {
  bool has_step = true;        // false: the job means nothing, and what follows `rules` is empty
  std::vector<Finding> rules;  // what the rules say of the job
  bool listed_only = false;
  std::vector<ListedFault> listed;
  JudgedProgram judged;
};

struct CheckedProgram {
  AskedProgram asked;
  Verdict verdict;
};
CheckedProgram checked_of(const Catalog& catalog, const ProgramRequest& request,
                          const JobRequest& job);

struct VerifiedProgram {
  AskedProgram asked;
  Program program;  // that was run
  Verification run;
};
VerifiedProgram verified_of(const Catalog& catalog, const ProgramRequest& request,
                            const JobRequest& job);

/// A program that is to be executed with numbers.
struct ProgramToRun {
  AskedProgram asked;
  std::optional<Job> job;  // none: it came from a file
  bool as_it_is = true;    // false: the program of the same job made small
  Program program;
  Program without_faults;
};
/// `fits`: whether a job's own program can be executed.
ProgramToRun program_to_run(const Catalog& catalog, const ProgramRequest& request,
                            const JobRequest& job, const std::function<bool(const Job&)>& fits);

}  // namespace placet
