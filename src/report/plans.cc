#include "report/plans.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/human.h"
#include "report/plan_terms.h"
#include "report/plan_words.h"
#include "report/timeline.h"

namespace placet {
namespace {

constexpr std::size_t kMostBarColumns = 20;
constexpr std::size_t kLeastBarColumns = 4;
constexpr std::size_t kBarColumn = 2;  // of the table of plans

std::string heading(const PlanSheet& sheet, const TextStyle& style) {
  const Job& base = *sheet.base;
  const std::string what = fmt::format("{} on {} ({} devices)", base.model.name, base.cluster->name,
                                       grouped(devices_of(*base.cluster)));
  std::string text = inked(style, Ink::bold, "Plans for " + what) + "\n";
  text += fmt::format("  {} samples of {} tokens per step, {}, {}\n", grouped(base.batch.global),
                      grouped(base.batch.sequence), base.engine_text, base.optimizer.name);
  if (!sheet.constraints.empty()) text += "  given: " + sheet.constraints + "\n";
  for (const std::string& note : base.model.notes) {
    text += "  note: " + wrapped(style, note, 8) + "\n";
  }
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

constexpr std::size_t kSentColumn = 6;

/// Columns behind memory that say the same in every row, the last first.
std::vector<std::size_t> alike_columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> alike;
  if (rows.size() < 2) return alike;
  for (std::size_t column = rows.front().size() - 1; column >= kSentColumn; --column) {
    const bool same = std::ranges::all_of(
        rows, [&](const auto& row) { return row[column] == rows.front()[column]; });
    if (same) alike.push_back(column);
  }
  return alike;
}

/// What the dropped columns would have said.
std::string alike_words(const PlanSheet& sheet) {
  const std::vector<PlanLine>& plans = sheet.plans;
  if (plans.size() < 2) return {};
  const auto all = [&](auto member) {
    return std::ranges::all_of(plans,
                               [&](const PlanLine& p) { return member(p) == member(plans[0]); });
  };
  std::string text;
  if (all([](const PlanLine& p) { return human_bytes(p.found.figures.sent); })) {
    text = "each sends " + human_bytes(plans[0].found.figures.sent);
  }
  if (all([](const PlanLine& p) { return p.pareto; })) {
    text +=
        (text.empty() ? "" : "; ") +
        std::string(plans[0].pareto ? "all are on the Pareto front of time, memory and bytes sent"
                                    : "none is on the Pareto front of the whole space");
  }
  if (all([](const PlanLine& p) { return p.proof.kind; })) {
    text += (text.empty() ? "" : "; ") + std::string("equivalence to single-device training is ") +
            std::string(proof_word(plans[0].proof.kind));
  }
  return text;
}

std::string plan_table(const PlanSheet& sheet, const TextStyle& style) {
  std::vector<Column> columns = {{.title = "#", .right = true},
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
  for (std::size_t i = 0; i < sheet.plans.size(); ++i) {
    const PlanLine& plan = sheet.plans[i];
    const PlanFigures& figures = plan.found.figures;
    rows.push_back({std::to_string(i + 1), step_words(figures.step), "",
                    utilisation_text(figures.utilisation),
                    rate_words(figures, devices_of(*sheet.base->cluster)),
                    memory_words(sheet, figures), human_bytes(figures.sent),
                    plan.pareto ? "yes" : "no", std::string(proof_word(plan.proof.kind))});
  }
  const std::size_t room = bar_columns(style, columns, rows);
  for (std::size_t i = 0; room > 0 && i < rows.size(); ++i) {
    const Seconds step = sheet.plans[i].found.figures.step;
    rows[i][kBarColumn] = bar(style, Ink::activations, in_seconds(step) / slowest, room);
  }
  for (const std::size_t column : alike_columns(rows)) {
    columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(column));
    for (auto& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  }
  return table(style, columns, rows, 0);
}

/// The table, with each plan's placement below its row.
std::string plans_block(const PlanSheet& sheet, const TextStyle& style) {
  std::vector<std::string> below;
  for (const PlanLine& plan : sheet.plans) {
    std::string text = in_lines(style, plan_words(plan), kBelow);
    const std::string proof = proof_words(plan);
    if (!proof.empty()) text += inked(style, Ink::yellow, in_lines(style, proof, kBelow));
    below.push_back(std::move(text));
  }
  return "\n" + with_below(plan_table(sheet, style), below);
}

std::string counts_text(const PlanSheet& sheet, const TextStyle& style) {
  std::string text = "\n";
  if (!sheet.plans.empty()) {
    if (const std::string alike = alike_words(sheet); !alike.empty()) {
      text += in_lines(style, "in all of these: " + alike, 0);
    }
    if (sheet.similar) text += in_lines(style, similar_runs_text(*sheet.similar, style), 0);
    for (const std::string& words : mixed_words(sheet)) text += in_lines(style, words, 0);
  }
  text += in_lines(style, searched_words(sheet), 0);
  for (const std::string& words :
       {space_words(sheet), rejected_words(sheet), variants_words(sheet)}) {
    if (!words.empty()) text += in_lines(style, words, 0);
  }
  return text;
}

std::string neighbours_text(const PlanSheet& sheet, const TextStyle& style) {
  const PlanLine& best = sheet.plans.front();
  if (best.neighbours.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  rows.reserve(best.neighbours.size());
  for (const NeighbourLine& line : best.neighbours) {
    rows.push_back(neighbour_cells(best, line));
  }
  return "\n" +
         inked(style, Ink::bold,
               "What if one choice in plan 1 changes? (the best alternative for each)") +
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
  std::vector<std::vector<std::string>> rows;
  for (const PlanMargin& margin : sheet.margins) {
    const double gain = gain_of(sheet, margin);
    rows.push_back({margin_words(margin), fmt::format("{:+.1f} %", gain * 100),
                    bar(style, Ink::green, std::clamp(gain / (margin.factor - 1), 0.0, 1.0),
                        kMostBarColumns)});
  }
  return "\n" + inked(style, Ink::bold, "Sensitivity: what would help") + "\n" +
         table(style, {{.title = "of"}, {.title = "tokens/s", .right = true}, {.title = ""}}, rows,
               0);
}

std::string shortage_text(const PlanSheet& sheet, const TextStyle& style) {
  std::string text = "\n" + inked(style, Ink::red, "no plan") + "\n";
  for (const std::string& words : shortage_words(sheet)) text += in_lines(style, words, 2);
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
  text += bound_words(sheet) + "\n";
  for (const std::string& price : sheet.prices) text += in_lines(style, "price: " + price, 0);
  text += training_text(sheet, style) + neighbours_text(sheet, style) + margins_text(sheet, style) +
          front_text(sheet, style) + scale_text(sheet, style);
  if (sheet.command.empty()) return text;
  text += "\n" + inked(style, Ink::bold, "Where its time goes") + "\n";
  return text + in_lines(style, simulate_words(sheet), 2);
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
