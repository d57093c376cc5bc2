#include "report/plan_terms.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/human.h"

namespace placet {
namespace {

std::string duration(double days) {
  if (days >= 1) return fmt::format("{:.1f} days", days);
  return days * 24 >= 1 ? fmt::format("{:.1f} hours", days * 24)
                        : fmt::format("{:.1f} minutes", days * 1440);
}

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

double tokens_per_second(const PlanLine& plan) {
  return plan.found.figures.tokens / in_seconds(plan.found.figures.step);
}

/// Tokens per second of the first row that has a plan, per device of it.
double first_rate(const PlanSheet& sheet) {
  const auto first = std::ranges::find_if(
      sheet.scale, [](const ScaleLine& line) { return line.plan.has_value(); });
  if (first == sheet.scale.end()) return 0;
  return tokens_per_second(*first->plan) / static_cast<double>(first->devices);
}

std::string price_text(const PlanSheet& sheet, const PlanLine& plan, std::int64_t devices) {
  if (!plan.cost) return "-";
  return dollars(sheet.train_tokens > 0 ? *training_run(sheet, plan, devices).cost : *plan.cost);
}

std::vector<std::string> scale_row(const PlanSheet& sheet, const ScaleLine& line, double rate) {
  if (!line.plan) return {grouped(line.devices), "-", "-", "-", "-", "-", "-"};
  const PlanFigures& figures = line.plan->found.figures;
  const double own = tokens_per_second(*line.plan) / static_cast<double>(line.devices);
  return {grouped(line.devices),
          fmt::format("{:.4g} s", in_seconds(figures.step)),
          fmt::format("{:.0f}", own),
          fmt::format("{:.0f} %", own / rate * 100),
          human_bytes(figures.peak),
          sheet.train_tokens > 0 ? duration(training_run(sheet, *line.plan, line.devices).days)
                                 : std::string("-"),
          price_text(sheet, *line.plan, line.devices)};
}

std::string scale_words(const ScaleLine& line) {
  if (!line.plan) return line.exact ? "nothing fits" : "stopped before a plan was found";
  return (line.exact ? "" : "not proven: ") + plan_words(*line.plan);
}

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

std::string plan_words(const PlanLine& plan) {
  return fmt::format("{} (micro-batch {}, recompute {})", plan.placement,
                     plan.found.plan.micro_batch, plan.recompute);
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

std::string dollars(double amount) {
  if (amount >= 1e6) return fmt::format("${:.2f} million", amount / 1e6);
  if (amount >= 1000) return "$" + grouped(static_cast<std::int64_t>(amount));
  return amount >= 0.1 ? fmt::format("${:.2f}", amount) : fmt::format("${:.2g}", amount);
}

std::string training_text(const PlanSheet& sheet, const TextStyle& style) {
  if (sheet.train_tokens == 0 || sheet.plans.empty()) return {};
  const TrainingRun run = training_run(sheet, sheet.plans.front(), devices_of(sheet));
  std::string text = "\n" + inked(style, Ink::bold, "Training to the end with plan 1") + "\n";
  text += fmt::format("  {} tokens: {} steps, {}, {} device hours\n",
                      human_count(static_cast<std::int64_t>(sheet.train_tokens)),
                      grouped(static_cast<std::int64_t>(run.steps)), duration(run.days),
                      grouped(static_cast<std::int64_t>(run.device_hours)));
  return text + (run.cost ? "  " + dollars(*run.cost) + " at the price of its devices\n"
                          : "  no price is known of its devices: --price says it\n");
}

std::string front_text(const PlanSheet& sheet, const TextStyle& style) {
  if (sheet.front.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> below;
  for (const PlanLine& plan : sheet.front) {
    rows.push_back({fmt::format("{:.4g} s", in_seconds(plan.found.figures.step)),
                    human_bytes(plan.found.figures.peak), human_bytes(plan.found.figures.sent),
                    price_text(sheet, plan, devices_of(sheet))});
    below.push_back(in_lines(style, plan_words(plan), kBelow));
  }
  const std::string lines = table(style,
                                  {{.title = "step", .right = true},
                                   {.title = "memory", .right = true},
                                   {.title = "sent", .right = true},
                                   {.title = "price", .right = true}},
                                  rows, 0);
  const std::string less =
      sheet.front_step == 0 ? "less" : fmt::format("{:.3g} % less", 100 * sheet.front_step);
  return "\n" + inked(style, Ink::bold, "Less memory, at the least loss of time") + "\n" +
         with_below(lines, below) +
         (sheet.front_whole ? "nothing needs " + less + " memory than the last one\n"
                            : "there are smaller ones\n");
}

std::string scale_text(const PlanSheet& sheet, const TextStyle& style) {
  if (sheet.scale.empty()) return {};
  const double rate = first_rate(sheet);
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> below;
  for (const ScaleLine& line : sheet.scale) {
    rows.push_back(scale_row(sheet, line, rate));
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
