#include "call/programs.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "catalog/file_text.h"
#include "check/mend.h"
#include "derive/rules.h"
#include "lower/lower.h"
#include "lower/small.h"
#include "program/fault.h"
#include "program/text.h"
#include "report/derivation_text.h"
#include "units/error.h"

namespace placet {
namespace {

/// What a program file may have at most.
constexpr std::size_t kMostProgramBytes = std::size_t{64} << 20;

[[noreturn]] void refuse_program(const std::string& file, const std::string& problem) {
  throw InputError({.where = "MODEL",
                    .value = file,
                    .problem = problem,
                    .allowed = "a file that `placet lower` wrote, or a model with --placement"});
}

/// The text of a program file where MODEL is the name of one: its first words say so.
std::optional<std::string> program_text(const JobFlags& flags) {
  std::error_code none;
  const bool placed = !flags.placements.empty() || !flags.job_file.empty() || !flags.from.empty();
  if (!std::filesystem::is_regular_file(flags.model, none)) {
    const bool is_path =
        flags.model.find('/') != std::string::npos || std::filesystem::exists(flags.model, none);
    if (is_path && !placed) refuse_program(flags.model, "is no file that can be read");
    return std::nullopt;
  }
  std::string text = read_file_text(flags.model, kMostProgramBytes, "a step program");
  if (!is_program_text(text)) {
    if (!placed) refuse_program(flags.model, "is no step program");
    return std::nullopt;
  }
  if (placed) {
    throw InputError({.where = flags.placements.empty() ? "--job" : "--placement",
                      .problem = "does not go with a step program, which says itself what is where",
                      .allowed = "a model, or the program alone"});
  }
  return text;
}

/// A job that means nothing has no step to judge.
void require_meaning(const Job& job) {
  for (const Finding& finding : check_rules(job)) {
    if (finding.rule != "meaning" && finding.rule != "shares") continue;
    throw InputError({.where = "--placement, " + finding.where,
                      .problem = finding.message,
                      .allowed = finding.cure});
  }
}

/// A step may be that of one device though an engine would not run it: the rules say so.
void warn_of_broken_rules(const ProgramRequest& call, const std::vector<Finding>& rules) {
  for (const Finding& finding : rules) {
    if (finding.severity == Severity::error) call.warn(finding_words(finding));
  }
}

bool leave_no_step(const std::vector<Finding>& rules) {
  return std::ranges::any_of(rules, [](const Finding& finding) {
    return finding.severity == Severity::error &&
           (finding.rule == "meaning" || finding.rule == "shares");
  });
}

/// A balance loss that depends on the layout is no training of one device: it is judged as such, or
/// left out with a warning where it is accepted.
Job with_balance_settled(const ProgramRequest& call, Job job) {
  if (job.balance != BalanceScope::micro_batch) return job;
  const bool accepted = std::ranges::find(call.accepted, kAuxScope) != call.accepted.end();
  if (accepted) job.balance = BalanceScope::none;
  const std::string scope = "the balance loss of each device's micro-batch depends on the layout";
  const std::string advice = accepted ? "it is left out of what is judged"
                                      : "--accept aux-scope leaves it out of what is judged";
  call.warn(scope + ": " + advice);
  return job;
}

/// The job of the words, or none where they name a program, and what the rules say of it.
struct ToJudge {
  std::optional<Job> job;
  std::string text;  // of a program
  std::vector<Finding> rules;
  bool has_step = true;

  const Job* placed() const { return job ? &*job : nullptr; }
};

ToJudge to_judge(const Catalog& catalog, const ProgramRequest& call, const JobRequest& request) {
  require_one_placement(call.job);
  ToJudge out;
  if (auto text = program_text(call.job)) {
    out.text = *std::move(text);
    return out;
  }
  Job job = load_job(catalog, request);
  // What is judged is not the engine that was named.
  for (const std::string& note : job.model.notes) {
    if (note.starts_with("--engine: ")) call.warn(note);
  }
  out.rules = check_rules(job);
  out.has_step = !leave_no_step(out.rules);
  if (out.has_step) {
    warn_of_broken_rules(call, out.rules);
    out.job = with_balance_settled(call, std::move(job));
  }
  return out;
}

/// "gpt2: dp=4:ddp".
std::string title_of(const Job& job) { return job.model.name + ": " + job.placement_text; }

/// What a page says of what was judged; without a job, of a program file.
JudgedProgram judged_program(const ProgramRequest& call, const Job* job) {
  return {.title = job == nullptr ? call.job.model : title_of(*job),
          .faults = call.faults,
          .accepted = call.accepted,
          .methods = job == nullptr ? std::vector<Method>() : job->methods,
          .run_as = {}};
}

AskedProgram asked_program(const ProgramRequest& call, const ToJudge& found) {
  AskedProgram asked{.has_step = found.has_step, .rules = found.rules};
  if (asked.has_step) asked.judged = judged_program(call, found.placed());
  return asked;
}

/// What each fault matches in the program as the faults before it have left it.
void list_faults(const ProgramRequest& call, Program program, AskedProgram& out) {
  if (call.faults.empty()) {
    throw InputError({.where = "--list-faults",
                      .value = "no fault",
                      .problem = "is given",
                      .allowed = "--fault \"OP(KIND, key=value, ...)\""});
  }
  out.listed_only = true;
  for (const std::string& words : call.faults) {
    const Fault fault = fault_from(words);
    out.listed.push_back({.text = fault.text, .matches = list_matches(program, fault)});
    program = with_faults(std::move(program), {fault});
  }
}

Program with_faults_of(const ProgramRequest& call, Program program) {
  std::vector<Fault> faults;
  faults.reserve(call.faults.size());
  for (const std::string& words : call.faults) faults.push_back(fault_from(words));
  return with_faults(std::move(program), faults);
}

/// "2 blocks on dp=2 tp=2, 2 micro-batches in a step".
std::string size_of(const Job& small) {
  std::string axes;
  std::int64_t samples = small.batch.micro;
  for (const AxisPlacement& axis : small.placement.axes) {
    axes += (axes.empty() ? "" : " ") + std::string(axis.axis.text()) + "=" +
            std::to_string(axis.degree);
    const bool batch = axis.how.cut == Cut::batch || axis.how.cut == Cut::expert;
    if (batch) samples *= axis.degree;
  }
  return std::to_string(small.model.figures.blocks) + " blocks on " +
         (axes.empty() ? "one device" : axes) + ", " +
         std::to_string(small.batch.global / samples) + " micro-batches in a step";
}

/// Numbers in a fault count in what is run, which is smaller than the job.
void warn_of_counts(const ProgramRequest& call, const Job& job) {
  const bool counts = std::ranges::any_of(call.faults, [](const std::string& words) {
    const Fault fault = fault_from(words);
    return fault.nth || fault.layer || fault.micro_batch || !fault.rank.is_all();
  });
  if (!counts) return;
  call.warn("--fault: layer, microbatch, rank and nth count in the small job that is run: " +
            size_of(small_job(job)));
}

/// The verdict on the program of a job or of a file. Programs of large jobs are too much to try
/// many changes on: where that leaves none found, the same job made small is asked.
Verdict verdict_with_cure(const ProgramRequest& call, const Job* job, Program program) {
  Verdict verdict = check_and_mend(std::move(program)).verdict;
  const bool left = verdict.cure && verdict.cure->cut_short && verdict.cure->change.empty();
  if (!left || job == nullptr) return verdict;
  try {
    const Verdict small = check_and_mend(with_faults_of(call, lower_small(*job))).verdict;
    // Another fault it would be, if numbers in its words count otherwise there.
    if (small.equivalent || small.holds != verdict.holds) return verdict;
    if (small.cure->change.empty()) return verdict;
    verdict.cure = small.cure;
    verdict.cure->found_in = "the same job made small: " + size_of(small_job(*job));
  } catch (const InputError&) {
    // Nothing there that the fault matches.
  }
  return verdict;
}

}  // namespace

LoweredJob lowered_of(const Catalog& catalog, const JobRequest& request) {
  const Job job = load_job(catalog, request);
  require_meaning(job);
  LoweredJob out{.title = title_of(job), .program = lower(job), .text = {}};
  out.text = to_text(out.program);
  return out;
}

CheckedProgram checked_of(const Catalog& catalog, const ProgramRequest& request,
                          const JobRequest& job) {
  const ToJudge found = to_judge(catalog, request, job);
  CheckedProgram out{.asked = asked_program(request, found), .verdict = {}};
  if (!found.has_step) return out;
  Program program = found.job ? lower(*found.job) : program_from(found.text, request.job.model);
  if (request.list_faults) {
    list_faults(request, std::move(program), out.asked);
    return out;
  }
  program = with_faults_of(request, std::move(program));
  out.verdict = verdict_with_cure(request, found.placed(), std::move(program));
  return out;
}

VerifiedProgram verified_of(const Catalog& catalog, const ProgramRequest& request,
                            const JobRequest& job) {
  const ToJudge found = to_judge(catalog, request, job);
  VerifiedProgram out{.asked = asked_program(request, found), .program = {}, .run = {}};
  if (!found.has_step) return out;
  if (found.job) warn_of_counts(request, *found.job);
  Program program =
      found.job ? lower_small(*found.job) : program_from(found.text, request.job.model);
  if (request.list_faults) {
    list_faults(request, std::move(program), out.asked);
    return out;
  }
  out.program = with_faults_of(request, std::move(program));
  if (found.job) out.asked.judged.run_as = size_of(small_job(*found.job));
  out.run = verify(out.program, {.seeds = request.seeds});
  return out;
}

ProgramToRun program_to_run(const Catalog& catalog, const ProgramRequest& request,
                            const JobRequest& job, const std::function<bool(const Job&)>& fits) {
  ToJudge found = to_judge(catalog, request, job);
  ProgramToRun out{
      .asked = asked_program(request, found), .job = {}, .program = {}, .without_faults = {}};
  if (!found.has_step) return out;
  out.as_it_is = !found.job || fits(*found.job);
  if (!out.as_it_is) warn_of_counts(request, *found.job);
  if (!found.job) {
    out.program = program_from(found.text, request.job.model);
  } else {
    out.program = out.as_it_is ? lower(*found.job) : lower_small(*found.job);
  }
  if (request.list_faults) {
    list_faults(request, std::move(out.program), out.asked);
    return out;
  }
  out.without_faults = out.program;
  out.program = with_faults_of(request, std::move(out.program));
  if (!out.as_it_is) out.asked.judged.run_as = size_of(small_job(*found.job));
  out.job = std::move(found.job);
  return out;
}

}  // namespace placet
