// placet plan MODEL --cluster ...: the best placements, and the proof that there is no better one.
#include <memory>

#include "catalog/choices_catalog.h"
#include "cli/command.h"
#include "cli/job_flags.h"
#include "cli/output.h"
#include "placement/grammar.h"
#include "search/planner.h"
#include <fmt/format.h>

namespace placet {
namespace {

struct PlanCall {
  JobFlags flags;
  bool json = false;
  std::size_t top = 5;
};

int plan_job(const PlanCall& call) {
  const Catalog catalog = find_catalog();
  const Job base = load_unplaced_job(catalog, request_of(call.flags));
  const StrategyCatalog strategies = load_strategies(catalog);
  const Choices choices = load_choices(catalog, strategies, "all");
  const PlanSpace space(base, choices, {});
  const PlanResult result = find_plans(space, {.top = call.top});
  Job job = base;
  for (const FoundPlan& found : result.plans) {
    space.apply(found.plan, job);
    print(fmt::format("{:.4g} s {:.3f} GB mfu {:.3f} micro {} rec {} {} off {} {}\n", in_seconds(found.figures.step),
                      in_gigabytes(found.figures.peak), found.figures.utilisation, found.plan.micro_batch, found.plan.recompute, found.plan.count, found.plan.offload,
                      print_placement(job.placement, strategies.vocabulary)));
  }
  print(fmt::format("space {} visited {} bounded {} exact {}\n", result.counts.space, result.counts.visited,
                    result.counts.bounded, result.counts.exact));
  for (const auto& [r, n] : result.counts.rejected) print(fmt::format("rejected {} {}\n", r, n));
  return result.plans.empty() ? kBad : kGood;
}

}  // namespace

void add_plan_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<PlanCall>();
  CLI::App* command = program.add_subcommand(
      "plan", "The best placements of a model on a cluster, and why no other is better");
  add_job_flags(*command, call->flags);
  command->add_flag("--json", call->json, "Print JSON and nothing else on standard output");
  command->add_option("--top", call->top, "How many plans")->type_name("N")->check(CLI::Range(1, 100));
  command->callback([call, &action] { action = [call] { return plan_job(*call); }; });
}

}  // namespace placet
