#include "report/plans.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/human.h"
#include "report/plan_terms.h"
#include "report/timeline.h"

namespace placet {
namespace {

constexpr std::size_t kMostBarColumns = 20;
constexpr std::size_t kLeastBarColumns = 4;
constexpr std::size_t kBarColumn = 2;  // of the table of plans

double tokens_per_second_per_device(const PlanSheet& sheet, const PlanFigures& figures) {
  const auto devices = static_cast<double>(devices_of(*sheet.base->cluster));
  return figures.tokens / in_seconds(figures.step) / devices;
}

std::string heading(const PlanSheet& sheet, const TextStyle& style) {
  const Job& base = *sheet.base;
  const std::string what = fmt::format("{} on {} ({} devices)", base.model.name, base.cluster->name,
                                       grouped(devices_of(*base.cluster)));
  std::string text = inked(style, Ink::bold, "Plans for " + what) + "\n";
  text += fmt::format("  {} samples of {} tokens per step, {}, {}\n", grouped(base.batch.global),
                      grouped(base.batch.sequence), base.engine_text, base.optimizer.name);
  if (!sheet.constraints.empty()) text += "  given: " + sheet.constraints + "\n";
  return text;
}

/// Columns for bars beside a table's other columns; 0: they have no room.
std::size_t bar_columns(const TextStyle& style, const std::vector<Column>& columns,
                        const std::vector<std::vector<std::string>>& rows) {
  constexpr std::size_t gap = 2;
  std::size_t used = gap * (columns.size() - 1);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::size_t widest = columns[c].title.size();
    for (const std::vector<std::string>& row : rows) widest = std::max(widest, row[c].size());
    used += widest;
  }
  const auto width = static_cast<std::size_t>(style.width);
  if (width < used + kLeastBarColumns) return 0;
  return std::min(width - used, kMostBarColumns);
}

std::string plan_table(const PlanSheet& sheet, const TextStyle& style) {
  const std::vector<Column> columns = {{.title = "#", .right = true},
                                       {.title = "step", .right = true},
                                       {.title = ""},
                                       {.title = "MFU", .right = true},
                                       {.title = "tok/s/dev", .right = true},
                                       {.title = "memory", .right = true},
                                       {.title = "sent", .right = true},
                                       {.title = "pareto"},
                                       {.title = "proof"}};
  std::vector<std::vector<std::string>> rows;
  const double slowest = std::ranges::max(sheet.plans, {}, [](const PlanLine& p) {
                           return p.found.figures.step;
                         }).found.figures.step.units();
  const Bytes capacity = smallest_memory(*sheet.base->cluster);
  for (std::size_t i = 0; i < sheet.plans.size(); ++i) {
    const PlanLine& plan = sheet.plans[i];
    const PlanFigures& figures = plan.found.figures;
    rows.push_back(
        {std::to_string(i + 1), fmt::format("{:.4g} s", in_seconds(figures.step)), "",
         utilisation_text(figures.utilisation),
         fmt::format("{:.0f}", tokens_per_second_per_device(sheet, figures)),
         fmt::format("{} ({:.0f} %)", human_bytes(figures.peak), figures.peak / capacity * 100),
         human_bytes(figures.sent), plan.pareto ? "yes" : "no",
         std::string(proof_word(plan.proof.kind))});
  }
  const std::size_t room = bar_columns(style, columns, rows);
  for (std::size_t i = 0; room > 0 && i < rows.size(); ++i) {
    const Seconds step = sheet.plans[i].found.figures.step;
    rows[i][kBarColumn] = bar(style, Ink::activations, in_seconds(step) / slowest, room);
  }
  return table(style, columns, rows, 0);
}

/// The table, with each plan's placement below its row.
std::string plans_block(const PlanSheet& sheet, const TextStyle& style) {
  std::vector<std::string> below;
  for (const PlanLine& plan : sheet.plans) {
    std::string text = in_lines(style, plan_words(plan), kBelow);
    if (plan.proof.kind != PlanProof::Kind::proven) {
      const char* word = plan.proof.kind == PlanProof::Kind::broken ? "broken: " : "not proven: ";
      text += inked(style, Ink::yellow, in_lines(style, word + plan.proof.reason, kBelow));
    }
    below.push_back(std::move(text));
  }
  return "\n" + with_below(plan_table(sheet, style), below);
}

std::string counts_text(const PlanSheet& sheet, const TextStyle& style) {
  const PlanCounts& counts = sheet.counts;
  std::string searched =
      fmt::format("searched {} plans: {} judged one by one, {} excluded by bounds",
                  grouped(counts.space), grouped(counts.visited), grouped(counts.bounded));
  if (counts.exact) searched += sheet.plans.empty() ? "; none fits" : "; none is better than these";
  std::string text = "\n" + in_lines(style, searched, 0);
  if (!counts.exact) text += "stopped early: not proven to be the best\n";
  std::string rejected;
  for (const auto& [rule, count] : counts.rejected) {
    rejected += (rejected.empty() ? "" : ", ") + rule + " " + grouped(count);
  }
  if (!rejected.empty()) text += in_lines(style, "not plans, by rule: " + rejected, 0);
  if (sheet.plans.size() > 1) {
    text += in_lines(style,
                     "each plan is the best of its variants in order of axes, blocks of stages, "
                     "attention and recomputation",
                     0);
  }
  return text;
}

std::string change_text(Seconds from, Seconds to) {
  const double change = to / from - 1;
  if (std::abs(change) < 5e-5) return "same";
  return fmt::format("{:+.1f} %", change * 100);
}

std::string neighbours_text(const PlanSheet& sheet, const TextStyle& style) {
  const PlanLine& best = sheet.plans.front();
  if (best.neighbours.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  rows.reserve(best.neighbours.size());
  for (const NeighbourLine& line : best.neighbours) {
    rows.push_back(
        {line.axis,
         line.figures ? change_text(best.found.figures.step, line.figures->step) : std::string("-"),
         line.figures ? human_bytes(line.figures->peak) : line.against, line.choice});
  }
  return "\n" + inked(style, Ink::bold, "Plan 1 with one choice changed, the best of each kind") +
         "\n" +
         table(style,
               {{.title = "changed"},
                {.title = "step", .right = true},
                {.title = "memory", .right = true},
                {.title = "to", .may_shrink = true}},
               rows, 0);
}

std::string margins_text(const PlanSheet& sheet, const TextStyle& style) {
  if (sheet.margins.empty()) return {};
  const PlanFigures& best = sheet.plans.front().found.figures;
  std::vector<std::vector<std::string>> rows;
  for (const PlanMargin& margin : sheet.margins) {
    const double rate = margin.plan.figures.tokens / in_seconds(margin.plan.figures.step);
    const double gain = rate / (best.tokens / in_seconds(best.step)) - 1;
    rows.push_back({fmt::format("{:.3g}x {}", margin.factor, margin.what),
                    fmt::format("{:+.1f} %", gain * 100),
                    bar(style, Ink::green, std::clamp(gain / (margin.factor - 1), 0.0, 1.0),
                        kMostBarColumns)});
  }
  return "\n" + inked(style, Ink::bold, "What more would bring") + "\n" +
         table(style, {{.title = "of"}, {.title = "tokens/s", .right = true}, {.title = ""}}, rows,
               0);
}

Bytes part_of(Bytes all, double fraction) {
  return bytes(static_cast<std::int64_t>(static_cast<double>(in_bytes(all)) * fraction));
}

std::string lack_text(const PlanSheet& sheet) {
  const PlanShortage& shortage = *sheet.shortage;
  switch (shortage.lack) {
    case PlanShortage::Lack::device:
      return "what is too small is the memory of the device";
    case PlanShortage::Lack::part_of_device:
      return fmt::format("the device has room for it; --max-memory {:g} allows {} of it",
                         sheet.memory_fraction,
                         human_bytes(part_of(shortage.capacity, sheet.memory_fraction)));
    case PlanShortage::Lack::host:
      return fmt::format(
          "the device has room for it; what is too small is the host: it needs {} of host memory, "
          "and a host has {}",
          human_bytes(shortage.host_used), human_bytes(shortage.host_capacity));
  }
  return {};
}

std::string shortage_text(const PlanSheet& sheet, const TextStyle& style) {
  const PlanShortage& shortage = *sheet.shortage;
  std::string text = "\n" + inked(style, Ink::red, "no plan") + "\n";
  if (!shortage.least) {
    return text + in_lines(style, "no placement keeps the rules and the constraints", 2);
  }
  const FoundPlan& least = *shortage.least;
  text += in_lines(style,
                   fmt::format("the placement that needs least takes {} of {} on a device: {}",
                               human_bytes(least.figures.peak), human_bytes(shortage.capacity),
                               sheet.shortage_placement),
                   2);
  text += in_lines(style, lack_text(sheet), 2);
  text += in_lines(style,
                   fmt::format("its largest part: {}, {}", shortage.largest,
                               human_bytes(shortage.largest_bytes)),
                   2);
  if (shortage.lack != PlanShortage::Lack::device) return text;
  text += in_lines(style,
                   shortage.devices > 0
                       ? fmt::format("{} such devices would do", grouped(shortage.devices))
                       : std::string("more such devices alone would not do"),
                   2);
  return text;
}

}  // namespace

std::string plans_text(const PlanSheet& sheet, const TextStyle& style) {
  std::string text = heading(sheet, style);
  if (sheet.plans.empty()) {
    if (sheet.shortage) text += shortage_text(sheet, style);
    return text + counts_text(sheet, style);
  }
  text += plans_block(sheet, style) + counts_text(sheet, style);
  text += "plan 1 is bound by " + sheet.plans.front().binds;
  if (sheet.plans.front().cost) {
    text += "; a step costs " + dollars(*sheet.plans.front().cost);
  }
  text += "\n" + training_text(sheet, style) + neighbours_text(sheet, style) +
          margins_text(sheet, style) + front_text(sheet, style) + scale_text(sheet, style);
  if (sheet.command.empty()) return text;
  text += "\n" + inked(style, Ink::bold, "Where its time goes") + "\n";
  return text + in_lines(style,
                         "placet simulate " + sheet.command + " " + plan_flags(sheet.plans.front()),
                         2);
}

std::string progress_text(const PlanProgress& progress) {
  const PlanCounts& counts = progress.counts;
  std::string text =
      fmt::format("{} plans judged, {} excluded", grouped(counts.visited), grouped(counts.bounded));
  if (progress.best) {
    text += fmt::format(", best so far {:.4g} s", in_seconds(progress.best->figures.step));
  }
  return text;
}

}  // namespace placet
