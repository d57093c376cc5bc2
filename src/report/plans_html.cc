#include <fmt/format.h>

#include <algorithm>

#include "report/html_parts.h"
#include "report/human.h"
#include "report/plan_terms.h"
#include "report/plans.h"

namespace placet {
namespace {

/// Of the width of a column of bars.
std::string bar_html(double part, std::string_view colour) {
  return share_bar(part, colour, "width=\"110\" height=\"10\"");
}

std::string words_html(const PlanLine& plan) {
  return code(plan.placement) + fmt::format("<br>micro-batch {}, recompute {}",
                                            plan.found.plan.micro_batch, escaped(plan.recompute));
}

std::string plans_section(const PlanSheet& sheet) {
  const Bytes capacity = smallest_memory(*sheet.base->cluster);
  double slowest = 0;
  for (const PlanLine& plan : sheet.plans) {
    slowest = std::max(slowest, in_seconds(plan.found.figures.step));
  }
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < sheet.plans.size(); ++i) {
    const PlanLine& plan = sheet.plans[i];
    const PlanFigures& figures = plan.found.figures;
    const double step = in_seconds(figures.step);
    rows.push_back({std::to_string(i + 1), fmt::format("{:.4g} s", step),
                    bar_html(step / slowest, "c-activations"),
                    utilisation_text(figures.utilisation), human_bytes(figures.peak),
                    bar_html(figures.peak / capacity, "c-parameters"), human_bytes(figures.sent),
                    plan.cost ? dollars(*plan.cost) : std::string("-"), plan.pareto ? "yes" : "no",
                    std::string(proof_word(plan.proof.kind)), words_html(plan)});
  }
  return section("Plans", html_table({{"#", true},
                                      {"step", true},
                                      {""},
                                      {"MFU", true},
                                      {"memory", true},
                                      {"of capacity"},
                                      {"sent", true},
                                      {"cost of a step", true},
                                      {"pareto"},
                                      {"proof"},
                                      {"placement"}},
                                     rows));
}

std::string neighbours_section(const PlanSheet& sheet) {
  if (sheet.plans.front().neighbours.empty()) return {};
  const double best = in_seconds(sheet.plans.front().found.figures.step);
  std::vector<std::vector<std::string>> rows;
  for (const NeighbourLine& line : sheet.plans.front().neighbours) {
    const bool is_plan = line.figures.has_value();
    rows.push_back(
        {escaped(line.axis),
         is_plan ? fmt::format("{:+.1f} %", (in_seconds(line.figures->step) / best - 1) * 100)
                 : std::string("-"),
         is_plan ? human_bytes(line.figures->peak) : escaped(line.against), code(line.choice)});
  }
  return section("Plan 1 with one choice changed, the best of each kind",
                 html_table({{"changed"}, {"step", true}, {"memory", true}, {"to"}}, rows));
}

std::string margins_section(const PlanSheet& sheet) {
  if (sheet.margins.empty()) return {};
  const PlanFigures& best = sheet.plans.front().found.figures;
  std::vector<std::vector<std::string>> rows;
  for (const PlanMargin& margin : sheet.margins) {
    const PlanFigures& own = margin.plan.figures;
    const double gain =
        own.tokens / in_seconds(own.step) / (best.tokens / in_seconds(best.step)) - 1;
    rows.push_back({fmt::format("{:.3g}x {}", margin.factor, escaped(margin.what)),
                    fmt::format("{:+.1f} %", gain * 100),
                    bar_html(gain / (margin.factor - 1), "c-activations")});
  }
  return section("What more would bring", html_table({{"of"}, {"tokens/s", true}, {""}}, rows));
}

std::string front_section(const PlanSheet& sheet) {
  if (sheet.front.empty()) return {};
  const PlanFigures& first = sheet.front.front().found.figures;
  std::vector<std::vector<std::string>> rows;
  for (const PlanLine& plan : sheet.front) {
    const PlanFigures& figures = plan.found.figures;
    rows.push_back({fmt::format("{:.4g} s", in_seconds(figures.step)), human_bytes(figures.peak),
                    bar_html(figures.peak / first.peak, "c-parameters"), words_html(plan)});
  }
  return section("Less memory, at the least loss of time",
                 html_table({{"step", true}, {"memory", true}, {""}, {"placement"}}, rows));
}

std::string scale_section(const PlanSheet& sheet) {
  if (sheet.scale.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const ScaleLine& line : sheet.scale) {
    if (!line.plan) {
      rows.push_back({grouped(line.devices), "-", "-", "nothing fits"});
      continue;
    }
    const PlanFigures& figures = line.plan->found.figures;
    const double rate =
        figures.tokens / in_seconds(figures.step) / static_cast<double>(line.devices);
    rows.push_back({grouped(line.devices), fmt::format("{:.4g} s", in_seconds(figures.step)),
                    fmt::format("{:.0f}", rate), words_html(*line.plan)});
  }
  return section(
      "The best plan by number of devices, same batch",
      html_table({{"devices", true}, {"step", true}, {"tok/s/dev", true}, {"placement"}}, rows));
}

std::string training_section(const PlanSheet& sheet) {
  const std::string text = training_text(sheet, {});
  return text.empty() ? text : "<pre class=\"card\">" + escaped(text) + "</pre>";
}

}  // namespace

std::string plans_html(const PlanSheet& sheet) {
  const Job& base = *sheet.base;
  const std::string title = "Plans for " + base.model.name + " on " + base.cluster->name;
  const PlanCounts& counts = sheet.counts;
  std::string body = "<h1>" + escaped(title) + "</h1>";
  body += fmt::format("<p class=\"soft\">{} devices, {} samples of {} tokens per step, {}, {}</p>",
                      grouped(devices_of(*base.cluster)), grouped(base.batch.global),
                      grouped(base.batch.sequence), escaped(base.engine_text),
                      escaped(base.optimizer.name));
  body += fmt::format(
      "<p class=\"verdict card {}\">{} plans: {} judged one by one, {} excluded by bounds; {}</p>",
      sheet.plans.empty() ? "bad" : "good", grouped(counts.space), grouped(counts.visited),
      grouped(counts.bounded),
      !counts.exact         ? "stopped early: not proven to be the best"
      : sheet.plans.empty() ? "none fits"
                            : "none is better than these");
  if (!sheet.plans.empty()) {
    body += plans_section(sheet) + training_section(sheet) + neighbours_section(sheet) +
            margins_section(sheet) + front_section(sheet) + scale_section(sheet);
  }
  return page(title, body);
}

}  // namespace placet
