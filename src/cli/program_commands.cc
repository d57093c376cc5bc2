// placet lower, check and verify: the step program of a job, or one from a file.
#include <algorithm>
#include <memory>
#include <optional>

#include "algebra/verify.h"
#include "catalog/file_text.h"
#include "catalog/reader.h"
#include "check/mend.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/job_flags.h"
#include "cli/output.h"
#include "derive/rules.h"
#include "lower/lower.h"
#include "lower/small.h"
#include "program/fault.h"
#include "program/text.h"
#include "report/derivation_text.h"
#include "report/program.h"
#include "report/verdict.h"
#include "units/error.h"

namespace placet {
namespace {

/// What a program file may have at most.
constexpr std::size_t kMostProgramBytes = std::size_t{64} << 20;

/// What may be accepted though it differs from the training of one device.
constexpr const char* kAuxScope = "aux-scope";

struct ProgramCall {
  JobFlags flags;
  ResultFlags result;
  std::string output;
  int seeds = 2;
  std::vector<std::string> faults;
  std::vector<std::string> accepted;
  bool list_faults = false;
};

[[noreturn]] void refuse_program(const std::string& file, const std::string& problem) {
  throw InputError({.where = "MODEL",
                    .value = file,
                    .problem = problem,
                    .allowed = "a file that `placet lower` wrote, or a model with --placement"});
}

/// The text of a program file where MODEL is the name of one: its first words say so.
std::optional<std::string> program_text(const JobFlags& flags) {
  std::error_code none;
  const bool placed = !flags.placements.empty() || !flags.job_file.empty();
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

/// What the rules say of the job that is judged.
struct RuleFindings {
  std::vector<Finding> all;

  bool leave_no_step() const {
    return std::ranges::any_of(all, [](const Finding& finding) {
      return finding.severity == Severity::error &&
             (finding.rule == "meaning" || finding.rule == "shares");
    });
  }
};

/// A step may be that of one device though an engine would not run it: the rules say so.
void warn_of_broken_rules(const RuleFindings& rules) {
  for (const Finding& finding : rules.all) {
    if (finding.severity == Severity::error) print_warning(finding_words(finding));
  }
}

int print_unjudged(const ProgramCall& call, const RuleFindings& rules) {
  print(call.result.json ? unjudged_json(rules.all) : unjudged_text(rules.all, output_style()));
  return kBad;
}

/// A balance loss that depends on the layout is no training of one device: it is judged as such, or
/// left out with a warning where it is accepted.
Job with_balance_settled(const ProgramCall& call, Job job) {
  if (job.balance != BalanceScope::micro_batch) return job;
  const bool accepted = std::ranges::find(call.accepted, kAuxScope) != call.accepted.end();
  if (accepted) job.balance = BalanceScope::none;
  const std::string scope = "the balance loss of each device's micro-batch depends on the layout";
  const std::string advice = accepted ? "it is left out of what is judged"
                                      : "--accept aux-scope leaves it out of what is judged";
  print_warning(scope + ": " + advice);
  return job;
}

/// The job of the flags, or none where the call names a program, and what the rules say of it.
struct ToJudge {
  std::optional<Job> job;
  std::string text;  // of a program
  RuleFindings rules;
};

ToJudge to_judge(const ProgramCall& call, const JobRequest& request) {
  ToJudge out;
  if (auto text = program_text(call.flags)) {
    out.text = *std::move(text);
    return out;
  }
  Job job = load_job(called_catalog(), request);
  out.rules.all = check_rules(job);
  if (!out.rules.leave_no_step()) {
    warn_of_broken_rules(out.rules);
    out.job = with_balance_settled(call, std::move(job));
  }
  return out;
}

/// "gpt2: dp=4:ddp".
std::string title_of(const Job& job) { return job.model.name + ": " + job.placement_text; }

/// What a page says of what was judged; without a job, of a program file.
JudgedProgram judged_program(const ProgramCall& call, const Job* job) {
  return {.title = job == nullptr ? call.flags.model : title_of(*job),
          .faults = call.faults,
          .accepted = call.accepted,
          .methods = job == nullptr ? std::vector<Method>() : job->methods,
          .run_as = {}};
}

int lower_job(const ProgramCall& call, const JobRequest& request) {
  require_one_placement(call.flags);
  const Job job = load_job(called_catalog(), request);
  require_meaning(job);
  const Program program = lower(job);
  const std::string text = to_text(program);
  if (!call.result.html.empty()) {
    write_file(call.result.html, program_html(title_of(job), program, text), "--html");
  }
  if (!call.output.empty()) write_file(call.output, text, "--output");
  if (call.result.json) print(program_json(program, text));
  if (!call.result.json && call.output.empty()) print(text);
  return kGood;
}

/// Prints what each fault matches, in the program as the faults before it have left it.
int list_faults(const ProgramCall& call, Program program) {
  if (!call.result.html.empty()) {
    throw InputError({.where = "--html",
                      .value = call.result.html,
                      .problem = "does not go with --list-faults",
                      .allowed = "--list-faults as text, or with --json"});
  }
  if (call.faults.empty()) {
    throw InputError({.where = "--list-faults",
                      .value = "no fault",
                      .problem = "is given",
                      .allowed = "--fault \"OP(KIND, key=value, ...)\""});
  }
  std::vector<ListedFault> listed;
  for (const std::string& words : call.faults) {
    const Fault fault = fault_from(words);
    listed.push_back({.text = fault.text, .matches = list_matches(program, fault)});
    program = with_faults(std::move(program), {fault});
  }
  print(call.result.json ? faults_json(listed) : faults_text(listed));
  return kGood;
}

Program with_faults_of(const ProgramCall& call, Program program) {
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
void warn_of_counts(const ProgramCall& call, const Job& job) {
  const bool counts = std::ranges::any_of(call.faults, [](const std::string& words) {
    const Fault fault = fault_from(words);
    return fault.nth || fault.layer || fault.micro_batch || !fault.rank.is_all();
  });
  if (!counts) return;
  print_warning("--fault: layer, microbatch, rank and nth count in the small job that is run: " +
                size_of(small_job(job)));
}

/// The verdict on the program of a job or of a file. Programs of large jobs are too much to try
/// many changes on: where that leaves none found, the same job made small is asked.
Verdict verdict_with_cure(const ProgramCall& call, const Job* job, Program program) {
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

int check_job(const ProgramCall& call, const JobRequest& request) {
  require_one_placement(call.flags);
  const auto [job, text, rules] = to_judge(call, request);
  if (rules.leave_no_step()) return print_unjudged(call, rules);
  const JudgedProgram judged = judged_program(call, job ? &*job : nullptr);
  Program program = job ? lower(*job) : program_from(text, call.flags.model);
  if (call.list_faults) return list_faults(call, std::move(program));
  program = with_faults_of(call, std::move(program));
  const Verdict verdict = verdict_with_cure(call, job ? &*job : nullptr, std::move(program));
  if (!call.result.html.empty()) {
    write_file(call.result.html, verdict_page(judged, verdict), "--html");
  }
  print(call.result.json
            ? verdict_json(verdict, judged.methods, rules.all)
            : methods_text(judged.methods, output_style()) + verdict_text(verdict, output_style()));
  return verdict.equivalent ? kGood : kBad;
}

int verify_job(const ProgramCall& call, const JobRequest& request) {
  require_one_placement(call.flags);
  const auto [job, text, rules] = to_judge(call, request);
  if (rules.leave_no_step()) return print_unjudged(call, rules);
  if (job) warn_of_counts(call, *job);
  Program program = job ? lower_small(*job) : program_from(text, call.flags.model);
  if (call.list_faults) return list_faults(call, std::move(program));
  program = with_faults_of(call, std::move(program));
  const Verification run = verify(program, {.seeds = call.seeds});
  if (!call.result.html.empty()) {
    JudgedProgram judged = judged_program(call, job ? &*job : nullptr);
    if (job) judged.run_as = size_of(small_job(*job));
    write_file(call.result.html, verification_page(judged, run), "--html");
  }
  print(call.result.json ? verification_json(run, check(program), rules.all)
                         : verification_text(run, output_style()));
  return run.equal ? kGood : kBad;
}

void add_fault_flags(CLI::App& command, ProgramCall& call) {
  command
      .add_option("--fault", call.faults,
                  "Change the program before it is judged; several, one after the other")
      ->type_name("OP(KIND,...)")
      ->expected(1)
      ->take_all();
  command.add_flag("--list-faults", call.list_faults, "Only print what each fault matches");
  command
      .add_option("--accept", call.accepted,
                  "What may differ from the training of one device: aux-scope (balance losses that "
                  "depend on the layout)")
      ->type_name("WHAT")
      ->check(CLI::IsMember({kAuxScope}));
}

}  // namespace

void add_lower_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<ProgramCall>();
  CLI::App* command = program.add_subcommand("lower", "The step program of a job, as text");
  add_job_flags(*command, call->flags);
  add_result_flags(*command, call->result);
  command->add_option("-o,--output", call->output, "Write the program's text to a file")
      ->type_name("FILE");
  command->footer(
      "\nExample:\n"
      "  placet lower llama-3.1-8b --placement \"dp=4:zero1 tp=2:tp+sp\" --seq 4096 "
      "--global-batch 32\n");
  command->callback([call, &action] {
    action = on_request(call->flags,
                        [call](const JobRequest& request) { return lower_job(*call, request); });
  });
}

void add_check_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<ProgramCall>();
  CLI::App* command = program.add_subcommand(
      "check", "Proves that a job, or a program file, is the training of one device");
  add_job_flags(*command, call->flags);
  add_result_flags(*command, call->result);
  add_fault_flags(*command, *call);
  command->footer(
      "\nExamples:\n"
      "  placet check llama-3.1-8b --placement \"dp=4:zero1 tp=2:tp+sp\" --global-batch 32\n"
      "  placet check gpt2 --placement \"dp=4:ddp\" --fault \"rescale(all_reduce, phase=reduce, "
      "by=1/dp)\"\n"
      "  placet check step.program\n");
  command->callback([call, &action] {
    action = on_request(call->flags,
                        [call](const JobRequest& request) { return check_job(*call, request); });
  });
}

void add_verify_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<ProgramCall>();
  CLI::App* command = program.add_subcommand(
      "verify", "Runs all ranks of a small mesh of the same shape over a finite field");
  add_job_flags(*command, call->flags);
  add_result_flags(*command, call->result);
  command->add_option("--seeds", call->seeds, "How often, each time with other numbers")
      ->type_name("N")
      ->check(CLI::Range(1, 100));
  add_fault_flags(*command, *call);
  command->footer(
      "\nExample:\n"
      "  placet verify llama-3.1-8b --placement \"pp=4:1f1b dp=8:zero1 tp=8:tp+sp\" "
      "--global-batch 128\n");
  command->callback([call, &action] {
    action = on_request(call->flags,
                        [call](const JobRequest& request) { return verify_job(*call, request); });
  });
}

}  // namespace placet
