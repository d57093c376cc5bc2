// placet reshard: the checkpoint of one placement as that of another.
#include <memory>

#include "call/checkpoints.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/job_flags.h"
#include "cli/output.h"
#include "report/program.h"

namespace placet {
namespace {

struct ReshardCall {
  ReshardRequest request;
  bool json = false;
};

int reshard(const ReshardCall& call) {
  const ReshardedRun done = resharded(called_catalog(), call.request);
  if (!done.asked.has_step) {
    print(call.json ? unjudged_json(done.asked.rules)
                    : unjudged_text(done.asked.rules, output_style()));
    return kBad;
  }
  print(call.json ? reshard_json(done.sheet) : reshard_text(done.sheet, output_style()));
  return kGood;
}

}  // namespace

void add_reshard_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<ReshardCall>();
  call->request.job.warn = print_warning;
  CLI::App* command =
      program.add_subcommand("reshard", "Convert a checkpoint to another placement, bit for bit");
  command->add_option("FROM", call->request.from, "A folder that `placet run --save` wrote")
      ->required();
  JobFlags& flags = call->request.job.job;
  command->add_option("--placement", flags.placements, "Where the state is to be")
      ->required()
      ->type_name("TEXT")
      ->expected(1)
      ->take_all();
  command
      ->add_option("--micro-batch", flags.micro_batch,
                   "Samples per micro-batch of the new job, where it is to be another")
      ->type_name("N");
  command->add_option("--global-batch", flags.global_batch, "Samples per step, likewise")
      ->type_name("N");
  command->add_option("-o,--output", call->request.output, "The new folder")
      ->required()
      ->type_name("DIR");
  command->add_flag("--json", call->json, "Print one JSON document and nothing else")
      ->disable_flag_override();
  command->footer(
      "\nThe job is that of the checkpoint. Numbers are read slice by slice.\n"
      "Examples:\n"
      "  placet run gpt2 --placement dp=4:zero3 --global-batch 4 --steps 2 --save after2\n"
      "  placet reshard after2 --placement \"dp=2:ddp tp=2:tp\" -o after2-tp\n");
  command->callback([call, &action] { action = [call] { return reshard(*call); }; });
}

}  // namespace placet
