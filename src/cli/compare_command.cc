// placet compare MODEL --placement A --placement B: the same job in several placements.
#include <memory>

#include "cli/command.h"
#include "cli/job_flags.h"
#include "cli/output.h"
#include "derive/derive.h"
#include "report/compare.h"
#include "report/html.h"
#include "report/json.h"
#include "units/error.h"

namespace placet {
namespace {

struct CompareCall {
  JobFlags flags;
  ResultFlags result;
};

int compare_jobs(const CompareCall& call) {
  JobRequest request = request_of(call.flags);
  std::vector<std::string> placements = call.flags.placements;
  if (placements.empty() && request.placement) placements.push_back(*request.placement);
  if (placements.empty()) {
    throw InputError({.where = "--placement",
                      .problem = "is missing",
                      .allowed = "two or more, such as --placement dp=8:ddp --placement dp=8:zero3"});
  }
  const Catalog catalog = find_catalog();
  std::vector<Judged> all;
  for (const std::string& placement : placements) {
    request.placement = placement;
    const auto job = std::make_shared<const Job>(load_job(catalog, request));
    all.push_back({.job = job, .derivation = derive(*job)});
  }
  if (!call.result.html.empty()) write_file(call.result.html, comparison_html(all), "--html");
  print(call.result.json ? comparison_json(all) : comparison_text(all, output_style()));
  return kGood;
}

}  // namespace

void add_compare_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<CompareCall>();
  CLI::App* command =
      program.add_subcommand("compare", "Several placements of one model, side by side");
  add_job_flags(*command, call->flags);
  add_result_flags(*command, call->result);
  command->footer(
      "\nExamples:\n"
      "  placet compare llama-3.1-8b --cluster h100-sxm:1 --placement dp=8:ddp \\\n"
      "      --placement dp=8:zero1 --placement dp=8:zero3\n"
      "  placet compare --job job.toml --placement tp=8:tp --placement tp=8:tp+sp --json\n");
  command->callback([call, &action] { action = [call] { return compare_jobs(*call); }; });
}

}  // namespace placet
