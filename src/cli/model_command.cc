// placet model MODEL: what is trained.
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

struct ModelCall {
  JobFlags flags;
  ResultFlags result;
};

int show_model(const ModelCall& call, const JobRequest& request) {
  const auto [model, sequence] = shown_model_of(called_catalog(), request);
  if (!call.result.html.empty()) {
    write_file(call.result.html, model_html(model, sequence), "--html");
  }
  print(call.result.json ? model_json(model, sequence)
                         : model_text(model, sequence, output_style()));
  return kGood;
}

}  // namespace

void add_model_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<ModelCall>();
  CLI::App* command = program.add_subcommand(
      "model", "What is trained: every tensor, exact counts, FLOPs per token");
  add_model_flags(*command, call->flags);
  add_result_flags(*command, call->result);
  command->footer(
      "\nExamples:\n"
      "  placet model llama-3.1-70b\n"
      "  placet model ~/checkpoints/my-model/config.json --json\n"
      "  placet model llama-3.1-8b --lora 16,q_proj,v_proj\n");
  command->callback([call, &action] {
    action = on_request(
        call->flags, [call](const JobRequest& request) { return show_model(*call, request); },
        AskedOf::what_to_train);
  });
}

}  // namespace placet
