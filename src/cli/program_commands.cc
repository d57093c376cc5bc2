// placet lower, check and verify: the step program of a job, or one from a file.
#include <memory>

#include "call/programs.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/job_flags.h"
#include "cli/output.h"
#include "units/error.h"

namespace placet {
namespace {

struct ProgramCall {
  ProgramRequest request;
  ResultFlags result;
  std::string output;
};

int lower_job(const ProgramCall& call, const JobRequest& request) {
  require_one_placement(call.request.job);
  const LoweredJob lowered = lowered_of(called_catalog(), request);
  if (!call.result.html.empty()) {
    write_file(call.result.html, program_html(lowered.title, lowered.program, lowered.text),
               "--html");
  }
  if (!call.output.empty()) write_file(call.output, lowered.text, "--output");
  if (call.result.json) print(program_json(lowered.program, lowered.text));
  if (!call.result.json && call.output.empty()) print(lowered.text);
  return kGood;
}

void check_page(const ProgramCall& call) {
  if (!call.request.list_faults || call.result.html.empty()) return;
  throw InputError({.where = "--html",
                    .value = call.result.html,
                    .problem = "does not go with --list-faults",
                    .allowed = "--list-faults as text, or with --json"});
}

int print_unjudged(const ProgramCall& call, const std::vector<Finding>& rules) {
  print(call.result.json ? unjudged_json(rules) : unjudged_text(rules, output_style()));
  return kBad;
}

int print_faults(const ProgramCall& call, const std::vector<ListedFault>& listed) {
  print(call.result.json ? faults_json(listed) : faults_text(listed));
  return kGood;
}

int check_job(const ProgramCall& call, const JobRequest& request) {
  check_page(call);
  const auto [asked, verdict] = checked_of(called_catalog(), call.request, request);
  if (!asked.has_step) return print_unjudged(call, asked.rules);
  if (asked.listed_only) return print_faults(call, asked.listed);
  const JudgedProgram& judged = asked.judged;
  if (!call.result.html.empty()) {
    write_file(call.result.html, verdict_page(judged, verdict), "--html");
  }
  print(call.result.json
            ? verdict_json(verdict, judged.methods, asked.rules)
            : methods_text(judged.methods, output_style()) + verdict_text(verdict, output_style()));
  return verdict.equivalent ? kGood : kBad;
}

int verify_job(const ProgramCall& call, const JobRequest& request) {
  check_page(call);
  const auto [asked, program, run] = verified_of(called_catalog(), call.request, request);
  if (!asked.has_step) return print_unjudged(call, asked.rules);
  if (asked.listed_only) return print_faults(call, asked.listed);
  if (!call.result.html.empty()) {
    write_file(call.result.html, verification_page(asked.judged, run), "--html");
  }
  print(call.result.json ? verification_json(run, check(program), asked.rules)
                         : verification_text(run, output_style()));
  return run.equal ? kGood : kBad;
}

void add_fault_flags(CLI::App& command, ProgramRequest& call) {
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

std::shared_ptr<ProgramCall> make_call() {
  auto call = std::make_shared<ProgramCall>();
  call->request.warn = print_warning;
  return call;
}

}  // namespace

void add_lower_command(CLI::App& program, Action& action) {
  auto call = make_call();
  CLI::App* command = program.add_subcommand("lower", "The step program of a job, as text");
  add_job_flags(*command, call->request.job);
  add_result_flags(*command, call->result);
  command->add_option("-o,--output", call->output, "Write the program's text to a file")
      ->type_name("FILE");
  command->footer(
      "\nExample:\n"
      "  placet lower llama-3.1-8b --placement \"dp=4:zero1 tp=2:tp+sp\" --seq 4096 "
      "--global-batch 32\n");
  command->callback([call, &action] {
    action = on_request(call->request.job,
                        [call](const JobRequest& request) { return lower_job(*call, request); });
  });
}

void add_check_command(CLI::App& program, Action& action) {
  auto call = make_call();
  CLI::App* command = program.add_subcommand(
      "check", "Proves that a job, or a program file, is the training of one device");
  add_job_flags(*command, call->request.job);
  add_result_flags(*command, call->result);
  add_fault_flags(*command, call->request);
  command
      ->add_option("--torch",
                   "A training script of PyTorch, to be checked as it is, on --world N "
                   "ranks (needs Python; `placet check --torch --help` lists its flags)")
      ->option_text("SCRIPT");
  command->footer(
      "\nExamples:\n"
      "  placet check llama-3.1-8b --placement \"dp=4:zero1 tp=2:tp+sp\" --global-batch 32\n"
      "  placet check gpt2 --placement \"dp=4:ddp\" --fault \"rescale(all_reduce, phase=reduce, "
      "by=1/dp)\"\n"
      "  placet check step.program\n"
      "  placet check --torch train.py --world 4\n");
  command->callback([call, &action] {
    action = on_request(call->request.job,
                        [call](const JobRequest& request) { return check_job(*call, request); });
  });
}

void add_verify_command(CLI::App& program, Action& action) {
  auto call = make_call();
  CLI::App* command = program.add_subcommand(
      "verify", "Runs all ranks of a small mesh of the same shape over a finite field");
  add_job_flags(*command, call->request.job);
  add_result_flags(*command, call->result);
  command->add_option("--seeds", call->request.seeds, "How often, each time with other numbers")
      ->type_name("N")
      ->check(CLI::Range(1, 100));
  add_fault_flags(*command, call->request);
  command->footer(
      "\nExample:\n"
      "  placet verify llama-3.1-8b --placement \"pp=4:1f1b dp=8:zero1 tp=8:tp+sp\" "
      "--global-batch 128\n");
  command->callback([call, &action] {
    action = on_request(call->request.job,
                        [call](const JobRequest& request) { return verify_job(*call, request); });
  });
}

}  // namespace placet
