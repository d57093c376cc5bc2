// placet compare MODEL --placement A --placement B: the same job in several placements.
#include <memory>
#include <numeric>

#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/job_flags.h"
#include "cli/output.h"
#include "derive/derive.h"
#include "derive/fit.h"
#include "report/compare.h"
#include "report/derivation_text.h"
#include "report/html.h"
#include "report/json.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

struct CompareCall {
  JobFlags flags;
  ResultFlags result;
};

// Bytes per step are comparable only if a step is the same: without --global-batch, the least one
// that every placement can make.
std::vector<Job> load_all(const Catalog& catalog, JobRequest request,
                          const std::vector<std::string>& placements) {
  std::vector<Job> jobs;
  std::int64_t samples = 1;
  bool differ = false;
  for (const std::string& placement : placements) {
    request.placement = placement;
    jobs.push_back(load_job(catalog, request));
    const std::int64_t global = jobs.back().batch.global;
    differ = differ || global != jobs.front().batch.global;
    samples = checked_multiply(samples / std::gcd(samples, global), global, "samples");
  }
  if (request.global_batch || !differ) return jobs;
  for (Job& job : jobs) {
    job.batch.global = samples;
    job.model.notes.back() = "--global-batch was not given: a step of " + std::to_string(samples) +
                             " samples, which all can make, is assumed";
  }
  return jobs;
}

/// The terms of each placement, under its name.
std::string explained(const std::vector<Judged>& all, const std::string& what) {
  std::string text;
  for (const Judged& judged : all) {
    if (what.empty() || !judged.derivation.meaningful) continue;
    text += "\n" + inked(output_style(), Ink::bold, judged.job->placement_text) + "\n" +
            explanation_text(judged, what, output_style());
  }
  return text;
}

int compare_jobs(const CompareCall& call, const JobRequest& request) {
  const std::string what = what_to_explain(call.result);
  std::vector<std::string> placements = call.flags.placements;
  if (placements.empty() && request.placement) placements.push_back(*request.placement);
  if (placements.empty()) {
    throw InputError(
        {.where = "--placement",
         .problem = "is missing",
         .allowed = "two or more, such as --placement dp=8:ddp --placement dp=8:zero3"});
  }
  std::vector<Judged> all;
  for (Job& job : load_all(called_catalog(), request, placements)) {
    auto kept = std::make_shared<const Job>(std::move(job));
    const Prepared prepared = prepare(*kept);
    Derivation derivation = derive(*kept, prepared);
    reserve_shown(*kept, prepared, ShownClasses::fullest, derivation);
    all.push_back({.job = std::move(kept), .derivation = std::move(derivation)});
  }
  if (!call.result.html.empty()) write_file(call.result.html, comparison_html(all), "--html");
  print(call.result.json ? comparison_json(all)
                         : comparison_text(all, output_style()) + explained(all, what));
  return kGood;
}

}  // namespace

void add_compare_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<CompareCall>();
  CLI::App* command =
      program.add_subcommand("compare", "Several placements of one model, side by side");
  add_job_flags(*command, call->flags);
  add_result_flags(*command, call->result);
  add_explain_flag(*command, call->result);
  command->footer(
      "\nExamples:\n"
      "  placet compare llama-3.1-8b --cluster h100-sxm:1 --placement dp=8:ddp \\\n"
      "      --placement dp=8:zero1 --placement dp=8:zero3\n"
      "  placet compare --job job.toml --placement tp=8:tp --placement tp=8:tp+sp --json\n");
  command->callback([call, &action] {
    action = on_request(call->flags,
                        [call](const JobRequest& request) { return compare_jobs(*call, request); });
  });
}

}  // namespace placet
