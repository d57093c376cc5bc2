// placet derive JOB: memory, communication and rules of one placement.
#include <memory>

#include "call/judged.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/job_flags.h"
#include "cli/output.h"
#include "report/derivation_text.h"
#include "report/html.h"
#include "report/json.h"

namespace placet {
namespace {

struct DeriveCall {
  JobFlags flags;
  ResultFlags result;
};

int derive_job(const DeriveCall& call, const JobRequest& request) {
  require_one_placement(call.flags);
  const std::string what = what_to_explain(call.result);
  const bool of_all = call.result.json || !call.result.html.empty();
  const Judged judged =
      judged_of(called_catalog(), request, of_all ? ShownClasses::all : ShownClasses::fullest);
  if (!call.result.html.empty()) {
    write_file(call.result.html, derivation_html(judged), "--html");
  }
  const TextStyle style = output_style();
  if (call.result.json) {
    print(derivation_json(judged));
  } else {
    print(derivation_text(judged, style) +
          (what.empty() ? what : "\n" + explanation_text(judged, what, style)));
  }
  return is_good(judged.derivation) ? kGood : kBad;
}

}  // namespace

void add_derive_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<DeriveCall>();
  CLI::App* command = program.add_subcommand(
      "derive", "Memory per device and state, communication per axis, rules of composition");
  add_job_flags(*command, call->flags);
  add_result_flags(*command, call->result);
  add_explain_flag(*command, call->result);
  command->footer(
      "\nExamples:\n"
      "  placet derive llama-3.1-8b --cluster h100-sxm:1 --placement \"dp=8:zero3\" --seq 8192\n"
      "  placet derive --job job.toml --explain optimizer\n"
      "  placet derive 70B --placement \"rep=2:ddp dp=8:zero3\" --json\n");
  command->callback([call, &action] {
    action = on_request(call->flags,
                        [call](const JobRequest& request) { return derive_job(*call, request); });
  });
}

}  // namespace placet
