// placet compare MODEL --placement A --placement B: the same job in several placements.
#include <memory>

#include "call/judged.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/job_flags.h"
#include "cli/output.h"
#include "report/compare.h"
#include "report/derivation_text.h"
#include "report/html.h"
#include "report/json.h"

namespace placet {
namespace {

struct CompareCall {
  JobFlags flags;
  ResultFlags result;
};

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
  const std::vector<Judged> all =
      compared_of(called_catalog(), request, call.flags.placements, call.flags.clusters);
  if (!call.result.html.empty()) write_file(call.result.html, comparison_html(all), "--html");
  print(call.result.json ? comparison_json(all)
                         : comparison_text(all, output_style()) + explained(all, what));
  return kGood;
}

}  // namespace

void add_compare_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<CompareCall>();
  CLI::App* command = program.add_subcommand(
      "compare", "Several placements of one model, or several clusters, side by side");
  add_job_flags(*command, call->flags);
  command->remove_option(command->get_option("--cluster"));
  command
      ->add_option("--cluster", call->flags.clusters,
                   "Devices: h100-sxm:8 (nodes), 64xh100-sxm (devices), a cluster or a file; give "
                   "several to compare them")
      ->type_name("CLUSTER")
      ->expected(1)
      ->take_all();
  add_result_flags(*command, call->result);
  add_explain_flag(*command, call->result);
  command->footer(
      "\nExamples:\n"
      "  placet compare llama-3.1-8b --cluster h100-sxm:1 --placement dp=8:ddp \\\n"
      "      --placement dp=8:zero1 --placement dp=8:zero3\n"
      "  placet compare llama-3.1-70b --placement dp=64:zero3 --cluster 64xh100 \\\n"
      "      --cluster 64xh200 --cluster 64xh100@400gbe/2\n"
      "  placet compare --job job.toml --placement tp=8:tp --placement tp=8:tp+sp --json\n");
  command->callback([call, &action] {
    action = on_request(call->flags,
                        [call](const JobRequest& request) { return compare_jobs(*call, request); });
  });
}

}  // namespace placet
