// placet export JOB --to DIALECT: the files that launch a job.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "call/configurations.h"
#include "call/export_sources.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/export_files.h"
#include "cli/job_flags.h"
#include "cli/output.h"
#include "interop/export.h"

namespace placet {
namespace {

struct ExportCall {
  JobFlags flags;
  std::string dialect, folder;
  bool json = false;
};

int export_files(const ExportCall& call, const JobRequest& request) {
  const Exported exported = exported_of(called_catalog(), call.flags, request, call.dialect);
  if (exported.unsaid.empty() && !call.folder.empty()) write_exported(exported, call.folder, "-o");
  print(call.json ? export_json(exported) : exported_text(exported));
  return exported.unsaid.empty() ? kGood : kBad;
}

}  // namespace

std::string exported_text(const Exported& exported) {
  if (!exported.unsaid.empty()) {
    std::string text = exported.dialect + " cannot say\n";
    for (const JobDifference& word : exported.unsaid) {
      text += fmt::format("  {}: {}\n    the nearest that it says: {}\n", word.word, word.one,
                          word.other);
    }
    return text;
  }
  std::string text = exported.dialect + "\n";
  for (const auto& [word, value] : exported.beside) {
    text += fmt::format("  said elsewhere: {} = {}\n", word, value);
  }
  for (const ExportedFile& file : exported.files) {
    text += fmt::format("\n--- {}\n{}", file.name, file.text);
  }
  return text;
}

void write_exported(const Exported& exported, const std::string& folder, const std::string& flag) {
  std::error_code fault;
  std::filesystem::create_directories(folder, fault);
  if (fault) {
    throw InputError({.where = flag,
                      .value = folder,
                      .problem = "cannot be made a folder: " + fault.message(),
                      .allowed = "a folder that can be written"});
  }
  for (const ExportedFile& file : exported.files) {
    write_file((std::filesystem::path(folder) / file.name).string(), file.text, flag);
  }
}

void add_export_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<ExportCall>();
  CLI::App* command = program.add_subcommand(
      "export", "A job as an engine's configuration, launch line and batch script");
  add_job_flags(*command, call->flags);
  command->add_option("--to", call->dialect, "The dialect: NAME or NAME@VERSION")
      ->required()
      ->type_name("DIALECT");
  command->add_option("-o,--output", call->folder, "Write the files into this folder")
      ->type_name("DIR");
  command->add_flag("--json", call->json, "Print one JSON document")->disable_flag_override();
  command->footer(
      "\nExamples:\n"
      "  placet export --job job.toml --to megatron -o run\n"
      "  placet export llama-3.1-8b --cluster h100-sxm:1 --placement \"dp=8:fsdp\" --to "
      "torchtitan\n");
  command->callback([call, &action] {
    action = on_request(call->flags,
                        [call](const JobRequest& request) { return export_files(*call, request); });
  });
}

}  // namespace placet
