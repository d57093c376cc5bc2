// placet simulate JOB: the time of a step, and where it goes.
#include <memory>

#include "cli/command.h"
#include "cli/job_flags.h"
#include "cli/output.h"
#include "derive/derive.h"
#include "derive/time.h"
#include "report/derivation_text.h"
#include "report/timeline.h"
#include "units/error.h"

namespace placet {
namespace {

struct SimulateCall {
  JobFlags flags;
  bool json = false;
};

int simulate_job(const SimulateCall& call) {
  const auto job = std::make_shared<const Job>(load_job(find_catalog(), request_of(call.flags)));
  if (!job->cluster) {
    throw InputError({.where = "--cluster",
                      .problem = "is missing: time depends on devices and links",
                      .allowed = "such as h100-sxm:8"});
  }
  const Prepared prepared = prepare(*job);
  const Judged judged{.job = job, .derivation = derive(*job, prepared), .reserved = {}};
  const TextStyle style = output_style();
  if (!judged.derivation.meaningful) {
    print(findings_text(judged.derivation.findings, style));
    return kBad;
  }
  const TimeDerivation time = derive_time(*job, prepared);
  print(call.json ? timeline_json(judged, time) : timeline_text(judged, time, style));
  return judged.derivation.fits ? kGood : kBad;
}

}  // namespace

void add_simulate_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<SimulateCall>();
  CLI::App* command =
      program.add_subcommand("simulate", "Time of a step, throughput, and where the time goes");
  add_job_flags(*command, call->flags);
  command->add_flag("--json", call->json, "Print JSON and nothing else on standard output");
  command->footer(
      "\nExamples:\n"
      "  placet simulate llama-3.1-8b --cluster h100-sxm:1 --placement \"dp=8:zero3\" --seq 8192 "
      "--global-batch 64\n");
  command->callback([call, &action] { action = [call] { return simulate_job(*call); }; });
}

}  // namespace placet
