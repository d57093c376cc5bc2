// placet run: the step program of a job, or one from a file, executed on real numbers.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "call/checkpoints.h"
#include "call/experiments.h"
#include "call/runs.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/job_flags.h"
#include "cli/net_program.h"
#include "cli/output.h"
#include "execute/mpi_ranks.h"
#include "report/program.h"
#include "units/error.h"

namespace placet {
namespace {

struct RunCall {
  RunRequest request;
  ResultFlags result;
  std::string experiment;
  std::string compare;
  std::string trace;
  bool is_silent = false;  // another process prints
};

int run_experiment(const RunCall& call) {
  const auto tell = [](const std::string& text) {
    if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "%s\n", text.c_str());
  };
  const Experiment experiment = experiment_of(called_catalog(), call.experiment, {.tell = tell});
  if (!call.result.html.empty()) {
    write_file(call.result.html, experiment_page(experiment), "--html");
  }
  print(call.result.json ? experiment_json(experiment)
                         : experiment_text(experiment, output_style()));
  return experiment.holds() ? kGood : kBad;
}

/// An experiment brings its jobs itself.
void require_alone(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const bool is_of_result = name == "--json" || name == "--html";
    if (option->count() == 0 || name == "--experiment" || is_of_result) continue;
    throw InputError({.where = name,
                      .problem = "does not go with --experiment, which brings its jobs itself",
                      .allowed = "--json or --html"});
  }
}

int run_and_print(const RunCall& call, const JobRequest& job) {
  RunRequest request = call.request;
  request.times = !call.trace.empty();
  if (isatty(STDERR_FILENO) != 0) {
    request.on_step = [](const StepLoss& step) {
      std::fprintf(stderr, "%s\n", step_text(step).c_str());
    };
  }
  const RanProgram ran = ran_of(called_catalog(), request, job);
  if (call.is_silent) return kGood;
  if (!ran.asked.has_step) {
    print(call.result.json ? unjudged_json(ran.asked.rules)
                           : unjudged_text(ran.asked.rules, output_style()));
    return kBad;
  }
  if (ran.asked.listed_only) {
    print(call.result.json ? faults_json(ran.asked.listed) : faults_text(ran.asked.listed));
    return kGood;
  }
  if (!call.result.html.empty()) write_file(call.result.html, run_page(ran.sheet), "--html");
  if (!call.trace.empty()) write_file(call.trace, ran_trace_json(ran.sheet), "--trace");
  print(call.result.json ? run_json(ran.sheet, ran.asked.rules)
                         : run_text(ran.sheet, output_style()));
  return ran.sheet.is_good() ? kGood : kBad;
}

/// The job of the flags, or of the checkpoint that they name.
int run_job(RunCall& call) {
  open_checkpoint(call.request);
  return on_request(call.request.program.job,
                    [&call](const JobRequest& job) { return run_and_print(call, job); })();
}

/// Under mpirun the first process prints and saves. What is wrong with the input is said by one:
/// the first that sees it, as a file may be missing on another machine only.
int run_over_mpi(RunCall& call) {
  go_on_in_net_program();
  const execute::MpiSession session;
  if (!session.is_first()) {
    call.is_silent = true;
    call.request.program.warn = [](const std::string&) {};
    call.request.save.clear();
  }
  try {
    return run_job(call);
  } catch (const InputError&) {
    if (session.tells_failure()) throw;
    return kGood;
  }
}

/// Where the state comes from and goes.
void add_checkpoint_flags(CLI::App* command, RunRequest& request) {
  command
      ->add_option("--save", request.save,
                   "Write the state of all ranks after the last step into this new folder")
      ->type_name("DIR");
  command
      ->add_option("--resume", request.resume,
                   "Continue from a folder written by --save; the job's flags are taken from it")
      ->type_name("DIR");
}

/// What functions compute, and what they are trained on.
void add_meaning_flags(CLI::App* command, RunRequest& request) {
  command
      ->add_option("--meaning", request.meanings,
                   "What functions compute: learning-rate=3e-4, activation=silu, ...")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->take_all();
  command
      ->add_option("--corpus", request.corpus,
                   "Train on this text, a byte a word (default: samples that are drawn)")
      ->type_name("FILE");
}

/// What is executed, and how.
void add_run_flags(CLI::App* command, RunCall* call) {
  ProgramRequest& asked = call->request.program;
  command->add_flag("--json", call->result.json, "Print one JSON document and nothing else");
  command->add_option("--steps", call->request.steps, "Steps of training")
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option(
          "--mode", call->request.mode,
          "canonical (exact sums, equal to the bit; without a checkpoint the default), declared "
          "(the job's formats), f32 or f64")
      ->type_name("MODE");
  command
      ->add_option("--ranks", call->request.ranks,
                   "virtual (all in this process), process (each in one of its own) or mpi (under "
                   "mpirun)")
      ->type_name("KIND");
  command
      ->add_option("--order", call->request.order,
                   "When communication runs: early (as soon as it can), late (only when compute "
                   "waits), seeded[=N] (random order), listed (program order, all ranks in step)")
      ->type_name("ORDER");
  add_meaning_flags(command, call->request);
  command->add_flag(
      "--times", call->request.tells_times,
      "Say how long each step took: the rank that took longest; of virtual ranks all, over "
      "MPI the first");
  command->add_option("--html", call->result.html, "Write a self-contained page")
      ->type_name("FILE");
  command
      ->add_option("--trace", call->trace,
                   "Write what each rank did when, for Perfetto and chrome://tracing")
      ->type_name("FILE");
  command
      ->add_option("--compare", call->compare,
                   "What the ranks are compared with; it is done in any case")
      ->check(CLI::IsMember({"one-device"}));
  command->add_flag(
      "--watch", call->request.watch,
      "Check in every step that replicas agree and that each gradient is complete; name "
      "the tensor, rank and axis that is not");
  command
      ->add_option("--fault", asked.faults,
                   "Change the program before it is run; several, one after the other. Or of a "
                   "rank: kill, stall, fail, corrupt or slow(rank=N)")
      ->type_name("OP(KIND,...)")
      ->expected(1)
      ->take_all();
  command->add_flag("--list-faults", asked.list_faults, "Only print what each fault matches");
  command
      ->add_option("--experiment", call->experiment,
                   "memory, communication or integrity: one of the theory's experiments, in place "
                   "of a job")
      ->type_name("NAME");
}

/// An experiment, or a run of the job.
Action asked_of(const std::shared_ptr<RunCall>& call, const CLI::App& command) {
  if (call->experiment.empty()) {
    return [call] {
      const bool over_mpi = rank_kind_from(call->request.ranks) == RankKind::over_mpi;
      return over_mpi ? run_over_mpi(*call) : run_job(*call);
    };
  }
  require_alone(command);
  return [call] { return run_experiment(*call); };
}

}  // namespace

void add_run_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<RunCall>();
  call->request.program.warn = print_warning;
  CLI::App* command = program.add_subcommand(
      "run", "Executes the step program on real numbers and compares with one device");
  add_job_flags(*command, call->request.program.job);
  add_run_flags(command, call.get());
  add_checkpoint_flags(command, call->request);
  command->footer(
      "\nExamples:\n"
      "  placet run gpt2 --placement \"dp=2:zero3 tp=2:tp+sp\" --global-batch 4\n"
      "  placet run gpt2 --placement dp=4:zero3 --ranks process\n"
      "  mpirun -n 4 placet run gpt2 --placement dp=4:zero3 --ranks mpi\n"
      "  placet run --experiment integrity\n"
      "  placet run llama-3.1-8b --placement \"pp=2:1f1b dp=2:zero1\" --global-batch 8 --steps "
      "10\n"
      "  placet run --job small.toml --corpus README.md --steps 20\n"
      "  placet run gpt2 --placement dp=4:zero3 --global-batch 4 --steps 2 --save after2\n"
      "  placet run --resume after2 --steps 8\n");
  command->callback([call, command, &action] { action = asked_of(call, *command); });
}

}  // namespace placet
