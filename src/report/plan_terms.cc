#include "report/plan_terms.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/human.h"
#include "report/plan_words.h"

namespace placet {
namespace {

std::vector<std::string> lines_of_text(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::int64_t devices_of(const PlanSheet& sheet) { return placet::devices_of(*sheet.base->cluster); }

}  // namespace

std::string in_lines(const TextStyle& style, const std::string& text, std::size_t indent) {
  const std::size_t room = static_cast<std::size_t>(std::max(30, style.width)) - indent;
  std::string out;
  std::string line;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && line.size() + 1 + word.size() > room) {
      out += std::string(indent, ' ') + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return out + std::string(indent, ' ') + line + "\n";
}

std::string with_below(const std::string& table, const std::vector<std::string>& below) {
  const std::vector<std::string> lines = lines_of_text(table);
  const std::size_t first = lines.size() - below.size();
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += lines[i] + "\n";
    if (i >= first) text += below[i - first];
  }
  return text;
}

std::string training_text(const PlanSheet& sheet, const TextStyle& style) {
  if (sheet.train_tokens == 0 || sheet.plans.empty()) return {};
  const TrainingRun run = training_run(sheet, sheet.plans.front(), devices_of(sheet));
  std::string text = "\n" + inked(style, Ink::bold, "Full run with plan 1") + "\n";
  text += fmt::format("  {} tokens: {} steps, {}, {} device hours\n",
                      human_count(static_cast<std::int64_t>(sheet.train_tokens)),
                      grouped(static_cast<std::int64_t>(run.steps)), duration(run.days),
                      grouped(static_cast<std::int64_t>(run.device_hours)));
  return text + (run.cost ? "  " + dollars(*run.cost) + " at the price of its devices, " +
                                (sheet.goodput < 1
                                     ? fmt::format("{:.0f} % of the time making progress\n",
                                                   sheet.goodput * 100)
                                     : std::string("without failures (--goodput counts them)\n"))
                          : "  no price is known of its devices: --price says it\n");
}

std::string front_text(const PlanSheet& sheet, const TextStyle& style) {
  if (sheet.front.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> below;
  for (const PlanLine& plan : sheet.front) {
    rows.push_back({step_words(plan.found.figures.step), human_bytes(plan.found.figures.needed),
                    human_bytes(plan.found.figures.sent),
                    price_words(sheet, plan, devices_of(sheet))});
    below.push_back(in_lines(style, plan_words(plan), kBelow));
  }
  const std::string lines = table(style,
                                  {{.title = "step", .right = true},
                                   {.title = "memory", .right = true},
                                   {.title = "sent", .right = true},
                                   {.title = "price", .right = true}},
                                  rows, 0);
  return "\n" + inked(style, Ink::bold, "Less memory, at the least loss of time") + "\n" +
         with_below(lines, below) + front_end_words(sheet) + "\n";
}

std::string scale_text(const PlanSheet& sheet, const TextStyle& style) {
  if (sheet.scale.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> below;
  for (const ScaleLine& line : sheet.scale) {
    rows.push_back(scale_cells(sheet, line));
    below.push_back(in_lines(style, scale_words(line), kBelow));
  }
  const std::string lines = table(style,
                                  {{.title = "devices", .right = true},
                                   {.title = "step", .right = true},
                                   {.title = "tok/s/dev", .right = true},
                                   {.title = "of first", .right = true},
                                   {.title = "memory", .right = true},
                                   {.title = "training", .right = true},
                                   {.title = "price", .right = true}},
                                  rows, 0);
  return "\n" + inked(style, Ink::bold, "The best plan by number of devices, same batch") + "\n" +
         with_below(lines, below);
}

}  // namespace placet
