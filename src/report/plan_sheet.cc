#include "report/plan_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "placement/grammar.h"
#include "placement/share_list.h"
#include "report/timeline.h"

namespace placet {
namespace {

std::optional<double> cost_of(const Cluster& cluster, Seconds step) {
  double per_hour = 0;
  for (const DeviceGroup& group : cluster.groups) {
    if (group.device.price_per_hour == 0) return std::nullopt;
    per_hour += group.device.price_per_hour * static_cast<double>(group.count);
  }
  return per_hour * in_seconds(step) / 3600;
}

/// Whether `a` is no worse than `b` in everything and better in something.
bool dominates(const PlanFigures& a, const PlanFigures& b) {
  const bool no_worse = a.step <= b.step && a.needed <= b.needed && a.sent <= b.sent;
  return no_worse && (a.step < b.step || a.needed < b.needed || a.sent < b.sent);
}

/// What differs between two placements, axis by axis; all of the second where axes differ.
std::string changed_axes(const std::string& from, const std::string& to) {
  std::string text;
  std::size_t begin = 0;
  while (begin < to.size()) {
    const std::size_t end = std::min(to.find(' ', begin), to.size());
    const std::string axis = to.substr(begin, end - begin);
    if ((" " + from + " ").find(" " + axis + " ") == std::string::npos) {
      text += (text.empty() ? "" : " ") + axis;
    }
    begin = end + 1;
  }
  return text.empty() ? to : text;
}

std::string choice_of(const PlanSpace& space, const Vocabulary& vocabulary, const PlanLine& plan,
                      const PlanNeighbour& other) {
  std::string text;
  if (other.plan.micro_batch != plan.found.plan.micro_batch) {
    text = "micro-batch " + std::to_string(other.plan.micro_batch);
  }
  std::string recompute = recompute_text(space, other.plan);
  if (recompute != plan.recompute) return recompute;
  const std::string placement = placement_text(space, vocabulary, other.plan);
  if (placement == plan.placement) return text;
  return changed_axes(plan.placement, placement) + (text.empty() ? "" : ", " + text);
}

}  // namespace

std::string placement_text(const PlanSpace& space, const Vocabulary& vocabulary, const Plan& plan) {
  Job job = space.base();
  space.apply(plan, job);
  return print_placement(job.placement, vocabulary);
}

std::string recompute_text(const PlanSpace& space, const Plan& plan) {
  const RecomputeWord& word = space.choices().recompute[static_cast<std::size_t>(plan.recompute)];
  return word.counted ? word.text + "=" + std::to_string(plan.count) : word.text;
}

std::string plan_flags(const PlanLine& plan) {
  std::string text = fmt::format("--placement \"{}\" --micro-batch {}",
                                 with_short_shares(plan.placement), plan.found.plan.micro_batch);
  if (plan.recompute != "none") text += " --recompute " + plan.recompute;
  return text;
}

PlanLine plan_line(const PlanSpace& space, const Vocabulary& vocabulary, const FoundPlan& found) {
  Job job = space.base();
  space.apply(found.plan, job);
  return {.found = found,
          .placement = print_placement(job.placement, vocabulary),
          .recompute = recompute_text(space, found.plan),
          .binds = binding_text(job, derive_time(job)),
          .cost = cost_of(*job.cluster, found.figures.step)};
}

TrainingRun training_run(const PlanSheet& sheet, const PlanLine& plan, std::int64_t devices) {
  TrainingRun out{.steps = std::ceil(sheet.train_tokens / plan.found.figures.tokens)};
  const double seconds = out.steps * in_seconds(plan.found.figures.step) / sheet.goodput;
  out.days = seconds / 86'400;
  out.device_hours = seconds / 3600 * static_cast<double>(devices);
  if (plan.cost) out.cost = *plan.cost * out.steps / sheet.goodput;
  return out;
}

std::vector<PlanLine> plan_lines(const PlanSpace& space, const Vocabulary& vocabulary,
                                 const PlanResult& result) {
  std::vector<PlanLine> out;
  for (const FoundPlan& found : result.plans) {
    PlanLine line = plan_line(space, vocabulary, found);
    line.pareto = std::ranges::none_of(result.plans, [&](const FoundPlan& other) {
      return dominates(other.figures, found.figures);
    });
    out.push_back(std::move(line));
  }
  return out;
}

std::vector<NeighbourLine> neighbour_lines(const PlanSpace& space, const Vocabulary& vocabulary,
                                           const PlanLine& plan,
                                           const std::vector<PlanNeighbour>& neighbours) {
  std::vector<NeighbourLine> out;
  const double capacity =
      in_gigabytes(smallest_memory(*space.base().cluster)) * space.constraints().memory_fraction;
  for (const PlanNeighbour& one : neighbours) {
    NeighbourLine line{.axis = one.axis, .choice = choice_of(space, vocabulary, plan, one)};
    if (one.is_plan()) {
      line.figures = one.judged.found->figures;
    } else if (!one.judged.broken.empty()) {
      line.against = "rule " + one.judged.broken;
    } else {
      const double over = in_gigabytes(one.judged.needed) - capacity;
      line.against = over > 0            ? fmt::format("{:.3g} GB too large", over)
                     : one.judged.cached ? "the allocator's cache"
                                         : "host memory";
    }
    out.push_back(std::move(line));
  }
  return out;
}

std::string_view proof_word(PlanProof::Kind kind) {
  switch (kind) {
    case PlanProof::Kind::proven:
      return "proven";
    case PlanProof::Kind::broken:
      return "broken";
    case PlanProof::Kind::unproven:
      return "open";
  }
  return {};
}

}  // namespace placet
