// placet simulate JOB: the time of a step, and where it goes.
#include <memory>

#include "call/judged.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/job_flags.h"
#include "cli/output.h"
#include "report/derivation_text.h"
#include "report/timeline.h"
#include "report/trace.h"
#include "units/error.h"

namespace placet {
namespace {

struct SimulateCall {
  JobFlags flags;
  ResultFlags result;
  std::string trace;
  std::vector<std::string> stragglers;
};

void check_files(const SimulateCall& call) {
  if (call.trace.empty() || call.trace != call.result.html) return;
  refuse("--trace", call.trace, "is the page of --html as well", "a file of its own for each");
}

void write_files(const SimulateCall& call, const Timeline& timeline) {
  if (!call.result.html.empty()) {
    write_file(call.result.html, timeline_html(timeline), "--html");
  }
  if (call.trace.empty()) return;
  write_file(call.trace, trace_json(timeline.judged, timeline.simulated), "--trace");
  if (timeline.simulated.left_out > 0) {
    print_warning("--trace leaves out " + std::to_string(timeline.simulated.left_out) +
                  " slices at the end of the step");
  }
}

int simulate_job(const SimulateCall& call, const JobRequest& request) {
  require_one_placement(call.flags);
  check_files(call);
  const std::string what = what_to_explain(call.result);
  const PlayedStep step =
      played_step_of(called_catalog(), {.job = request, .stragglers = call.stragglers});
  const TextStyle style = output_style();
  if (!step.has_time) {
    print(call.result.json ? timeline_json(step.judged)
                           : findings_text(step.judged.derivation.findings, style));
    return kBad;
  }
  const Timeline timeline = step.timeline();
  write_files(call, timeline);
  print(call.result.json
            ? timeline_json(timeline)
            : timeline_text(timeline, style) +
                  (what.empty() ? what : "\n" + explanation_text(step.judged, what, style)));
  return is_good(step.judged.derivation) ? kGood : kBad;
}

}  // namespace

void add_simulate_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<SimulateCall>();
  CLI::App* command =
      program.add_subcommand("simulate", "Time of a step, throughput, and where the time goes");
  add_job_flags(*command, call->flags);
  add_result_flags(*command, call->result);
  add_explain_flag(*command, call->result);
  command
      ->add_option("--trace", call->trace,
                   "Write the step's events for chrome://tracing and Perfetto")
      ->type_name("FILE");
  command
      ->add_option("--straggler", call->stragglers,
                   "Slow a stage down by a factor, to see what a straggler costs: STAGE=FACTOR, "
                   "such as 2=1.3")
      ->type_name("STAGE=FACTOR")
      ->allow_extra_args(false);
  command->footer(
      "\nExamples:\n"
      "  placet simulate llama-3.1-8b --cluster h100-sxm:1 --placement \"dp=8:zero3\" --seq 8192 "
      "--global-batch 64\n"
      "  placet simulate llama-3.1-8b --cluster h100-sxm:1 --placement \"pp=4:1f1b dp=2:zero1\" "
      "--seq 8192 --global-batch 32 --trace step.json --html step.html\n");
  command->callback([call, &action] {
    action = on_request(call->flags,
                        [call](const JobRequest& request) { return simulate_job(*call, request); });
  });
}

}  // namespace placet
