#include <fmt/format.h>

#include <algorithm>

#include "placement/share_list.h"
#include "report/chart.h"
#include "report/html_parts.h"
#include "report/human.h"
#include "report/plan_terms.h"
#include "report/plan_words.h"
#include "report/plans.h"

namespace placet {
namespace {

/// Of the width of a column of bars.
std::string bar_html(double part, std::string_view colour) {
  return share_bar(part, colour, "width=\"110\" height=\"10\"");
}

std::string words_html(const PlanLine& plan) {
  return code(with_short_shares(plan.placement)) + fmt::format(" micro-batch {}, recompute {}",
                                                               plan.found.plan.micro_batch,
                                                               escaped(plan.recompute));
}

/// What stands under a plan's figures.
std::string line_html(const PlanLine& plan) {
  const std::string proof = proof_words(plan);
  return words_html(plan) + (proof.empty() ? proof : "<br>" + escaped(proof));
}

std::string paragraph(const std::string& text) {
  return text.empty() ? text : "<p class=\"soft\">" + escaped(text) + "</p>";
}

std::string plans_section(const PlanSheet& sheet) {
  const Bytes capacity = smallest_memory(*sheet.base->cluster);
  double slowest = 0;
  for (const PlanLine& plan : sheet.plans) {
    slowest = std::max(slowest, in_seconds(plan.found.figures.step));
  }
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> below;
  for (std::size_t i = 0; i < sheet.plans.size(); ++i) {
    const PlanLine& plan = sheet.plans[i];
    const PlanFigures& figures = plan.found.figures;
    rows.push_back({std::to_string(i + 1), step_words(figures.step),
                    bar_html(in_seconds(figures.step) / slowest, "c-activations"),
                    utilisation_text(figures.utilisation),
                    rate_words(figures, devices_of(*sheet.base->cluster)),
                    memory_words(sheet, figures),
                    bar_html(figures.needed / capacity, "c-parameters"), human_bytes(figures.sent),
                    plan.cost ? dollars(*plan.cost) : std::string("-"), plan.pareto ? "yes" : "no",
                    std::string(proof_word(plan.proof.kind))});
    below.push_back(line_html(plan));
  }
  const std::string table = html_table({{"#", true},
                                        {"step", true},
                                        {"", false, true},
                                        {"MFU", true},
                                        {"tok/s/dev", true},
                                        {"memory", true},
                                        {"", false, true},
                                        {"sent", true},
                                        {"cost of a step", true},
                                        {"pareto"},
                                        {"proof"}},
                                       rows, below);
  return section("Plans", table + paragraph(variants_words(sheet)) + paragraph(bound_words(sheet)));
}

std::string neighbours_section(const PlanSheet& sheet) {
  const PlanLine& best = sheet.plans.front();
  if (best.neighbours.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> below;
  for (const NeighbourLine& line : best.neighbours) {
    std::vector<std::string> cells = neighbour_cells(best, line);
    below.push_back(code(cells.back()));
    cells.pop_back();
    for (std::string& cell : cells) cell = escaped(cell);
    rows.push_back(std::move(cells));
  }
  return section("What if one choice in plan 1 changes? (the best alternative for each)",
                 html_table({{"changed, to"}, {"step", true}, {"memory", true}}, rows, below));
}

std::string margins_section(const PlanSheet& sheet) {
  if (sheet.margins.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const PlanMargin& margin : sheet.margins) {
    const double gain = gain_of(sheet, margin);
    rows.push_back({escaped(margin_words(margin)), fmt::format("{:+.1f} %", gain * 100),
                    bar_html(gain / (margin.factor - 1), "c-activations")});
  }
  return section("Sensitivity: what would help",
                 html_table({{"of"}, {"tokens/s", true}, {"", false, true}}, rows));
}

std::string front_section(const PlanSheet& sheet) {
  if (sheet.front.empty()) return {};
  const PlanFigures& first = sheet.front.front().found.figures;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> below;
  for (const PlanLine& plan : sheet.front) {
    const PlanFigures& figures = plan.found.figures;
    rows.push_back({step_words(figures.step), human_bytes(figures.needed),
                    bar_html(figures.needed / first.needed, "c-parameters"),
                    human_bytes(figures.sent),
                    price_words(sheet, plan, devices_of(*sheet.base->cluster))});
    below.push_back(words_html(plan));
  }
  const std::string table = html_table(
      {{"step", true}, {"memory", true}, {"", false, true}, {"sent", true}, {"price", true}}, rows,
      below);
  return section("Less memory, at the least loss of time",
                 table + paragraph(front_end_words(sheet)));
}

/// Time to the right, memory upwards: the plans listed, and below them those of the trade-off where
/// it was asked for.
std::string scatter_section(const PlanSheet& sheet) {
  std::vector<ChartPoint> points;
  const auto add = [&](const PlanLine& plan, const std::string& label, std::string_view css) {
    const PlanFigures& figures = plan.found.figures;
    points.push_back(
        {in_seconds(figures.step), in_gigabytes(figures.needed), label,
         step_words(figures.step) + ", " + human_bytes(figures.needed) + ": " + plan.placement,
         css});
  };
  for (const PlanLine& plan : sheet.front) add(plan, {}, "c-overhead");
  for (std::size_t i = 0; i < sheet.plans.size(); ++i) {
    add(sheet.plans[i], std::to_string(i + 1), "c-parameters");
  }
  const std::string drawn =
      scatter("plans by time and memory", "step, seconds", "memory per device, GB", points);
  if (drawn.empty()) return {};
  return section("Time and memory",
                 drawn +
                     "<p class=\"soft\">Numbers are those of the plans below; left and down is "
                     "better.</p>\n");
}

std::string scale_section(const PlanSheet& sheet) {
  if (sheet.scale.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> below;
  for (const ScaleLine& line : sheet.scale) {
    rows.push_back(scale_cells(sheet, line));
    const bool proven = line.plan && line.exact;
    below.push_back(proven ? words_html(*line.plan) : escaped(scale_words(line)));
  }
  const std::string table = html_table({{"devices", true},
                                        {"step", true},
                                        {"tok/s/dev", true},
                                        {"of first", true},
                                        {"memory", true},
                                        {"training", true},
                                        {"price", true}},
                                       rows, below);
  return section("The best plan by number of devices, same batch", table);
}

std::string training_section(const PlanSheet& sheet) {
  const std::string text = training_text(sheet, {});
  return text.empty() ? text : "<pre class=\"card\">" + escaped(text) + "</pre>";
}

std::string shortage_section(const PlanSheet& sheet) {
  if (!sheet.shortage) return {};
  std::string body;
  for (const std::string& words : shortage_words(sheet)) body += "<p>" + escaped(words) + "</p>";
  return section("No plan", body);
}

std::string command_section(const PlanSheet& sheet) {
  if (sheet.command.empty()) return {};
  return section("Where its time goes",
                 "<pre class=\"card\">" + escaped(simulate_words(sheet)) + "</pre>");
}

}  // namespace

std::string plans_html(const PlanSheet& sheet) {
  const Job& base = *sheet.base;
  const std::string title = "Plans for " + base.model.name + " on " + base.cluster->name;
  std::string body = "<h1>" + escaped(title) + "</h1>";
  body += fmt::format("<p class=\"soft\">{} devices, {} samples of {} tokens per step, {}, {}</p>",
                      grouped(devices_of(*base.cluster)), grouped(base.batch.global),
                      grouped(base.batch.sequence), escaped(base.engine_text),
                      escaped(base.optimizer.name));
  if (!sheet.constraints.empty()) body += paragraph("given: " + sheet.constraints);
  for (const std::string& note : sheet.base->model.notes) body += paragraph("note: " + note);
  body += fmt::format("<p class=\"verdict card {}\">{}</p>", sheet.plans.empty() ? "bad" : "good",
                      escaped(answer_words(sheet)));
  body += paragraph(searched_words(sheet)) + paragraph(space_words(sheet)) +
          paragraph(rejected_words(sheet));
  if (sheet.plans.empty()) return page(title, body + shortage_section(sheet));
  body += scatter_section(sheet) + plans_section(sheet) + training_section(sheet) +
          neighbours_section(sheet) + margins_section(sheet) + front_section(sheet) +
          scale_section(sheet) + command_section(sheet);
  return page(title, body);
}

}  // namespace placet
