// placet simulate JOB: the time of a step, and where it goes.
#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "catalog/reader.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/job_flags.h"
#include "cli/output.h"
#include "cli/straggler_flag.h"
#include "derive/derive.h"
#include "derive/fit.h"
#include "derive/step_parts.h"
#include "derive/time.h"
#include "profile/conditions.h"
#include "report/derivation_text.h"
#include "report/timeline.h"
#include "report/trace.h"
#include "simulate/advice.h"
#include "simulate/simulation.h"
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

/// A step is played pass by pass: time and memory grow with their number.
constexpr std::int64_t kMostMicroBatches = 1'000'000;

void require_few_micro_batches(const Job& job) {
  const std::int64_t count = micro_batches_per_step(job);
  if (count <= kMostMicroBatches) return;
  throw InputError({.where = "--global-batch",
                    .value = std::to_string(job.batch.global),
                    .problem = "makes " + std::to_string(count) + " micro-batches in a step",
                    .allowed = "at most " + std::to_string(kMostMicroBatches) +
                               " of them: fewer samples, or a larger --micro-batch"});
}

int simulate_job(const SimulateCall& call, const JobRequest& request) {
  require_one_placement(call.flags);
  check_files(call);
  const std::string what = what_to_explain(call.result);
  const auto job = std::make_shared<const Job>(load_job(called_catalog(), request));
  require_few_micro_batches(*job);
  if (!job->cluster) {
    fail_missing(request, "cluster",
                 "devices and links, on which time depends: such as h100-sxm:8");
  }
  require_shapes(*job, "time");
  const Prepared prepared = prepare(*job);
  Judged judged{.job = job, .derivation = derive(*job, prepared)};
  reserve_shown(*job, prepared, ShownClasses::fullest, judged.derivation);
  const TextStyle style = output_style();
  if (!judged.derivation.meaningful) {
    print(call.result.json ? timeline_json(judged)
                           : findings_text(judged.derivation.findings, style));
    return kBad;
  }
  const TimeDerivation time = derive_time(*job, prepared);
  const StepParts parts = step_parts(*job, prepared);
  const std::vector<Straggler> stragglers = read_stragglers(call.stragglers, parts.stages());
  SimulateChoice choice;
  for (const Straggler& straggler : stragglers) {
    choice.slower.resize(parts.stages(), 1);
    choice.slower[static_cast<std::size_t>(straggler.stage)] = straggler.factor;
  }
  const Simulation simulated = simulate(parts, choice);
  const Simulation even = stragglers.empty() ? Simulation() : simulate(parts, {.most_slices = 0});
  const Simulation& undisturbed = stragglers.empty() ? simulated : even;
  std::vector<Finding> findings = judged.derivation.findings;
  std::ranges::move(advice_on(*job, time, undisturbed, {}), std::back_inserter(findings));
  const Timeline timeline{.judged = judged,
                          .time = time,
                          .parts = parts,
                          .simulated = simulated,
                          .findings = std::move(findings),
                          .stragglers = stragglers,
                          .undisturbed = undisturbed.step};
  write_files(call, timeline);
  print(call.result.json
            ? timeline_json(timeline)
            : timeline_text(timeline, style) +
                  (what.empty() ? what : "\n" + explanation_text(judged, what, style)));
  return is_good(judged.derivation) ? kGood : kBad;
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
