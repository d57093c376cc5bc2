#include "report/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/human.h"
#include "report/json_parts.h"
#include "report/run_parts.h"

namespace placet {
namespace {

constexpr std::size_t kShown = 10;

std::string counted(std::int64_t n, const std::string& what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

}  // namespace

std::string index_of(const Difference& d) {
  std::string text;
  for (std::int64_t i : d.index) text += (text.empty() ? "" : " ") + std::to_string(i);
  return "[" + text + "]";
}

namespace {

/// What was compared with one device.
std::string comparison_of(const RealRun& run) {
  const std::string size =
      fmt::format("{} on {}", counted(static_cast<std::int64_t>(run.steps.size()), "step"),
                  counted(run.ranks, "rank"));
  if (run.arithmetic != Arithmetic::canonical) {
    return fmt::format(
        "{}: losses differ from those of one device by at most {:.1e} of themselves (allowed "
        "{:.1e}); "
        "{} of {} numbers have other bits",
        size, run.largest_difference, run.tolerance, run.differing, run.compared);
  }
  if (run.equal) {
    return fmt::format(
        "{}: every parameter, optimizer state and loss has the bits of one device ({} numbers)",
        size, run.compared);
  }
  return fmt::format("{}: {} of {} numbers have other bits than on one device", size, run.differing,
                     run.compared);
}

}  // namespace

std::string sentence_of(const RealRun& run) {
  if (run.stuck) return *run.stuck;
  const auto found = static_cast<std::int64_t>(run.watched.size());
  const std::string text = comparison_of(run);
  return found == 0 ? text : text + "; " + counted(found, "finding") + " of --watch";
}

std::string heading_of(const RealRun& run) {
  if (run.stuck) return "Stuck";
  if (run.arithmetic == Arithmetic::canonical) return run.equal ? "Equal to the bit" : "Not equal";
  return run.equal ? "Close" : "Not close";
}

namespace {

std::string ranks_text(const RealRun& run) {
  const std::string order = ", queue order " + text_of(run.order);
  switch (run.rank_kind) {
    case RankKind::in_one_process:
      return "virtual" + order;
    case RankKind::in_processes:
      return "one process each" + order;
    case RankKind::over_mpi:
      return "MPI processes" + order;
  }
  return "";
}

/// Figures of a program that was made smaller: there is no job of that size to derive them from.
std::string measured_text(const std::vector<Beside>& lines, const std::string& title,
                          const TextStyle& style) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(lines.size());
  for (const Beside& line : lines) rows.push_back({line.what, std::to_string(line.measured)});
  return "\n" + table(style,
                      {{.title = title, .may_shrink = true}, {.title = "measured", .right = true}},
                      rows, 2);
}

std::string figures_text(const std::vector<Beside>& lines, const std::string& title,
                         const TextStyle& style) {
  const auto is_derived = [](const Beside& line) { return line.derived.has_value(); };
  if (std::ranges::none_of(lines, is_derived)) return measured_text(lines, title, style);
  std::vector<std::vector<std::string>> rows;
  rows.reserve(lines.size());
  for (const Beside& line : lines) {
    const std::string derived = line.derived ? std::to_string(*line.derived) : "-";
    std::string sign;
    if (line.derived) sign = *line.derived == line.measured ? "equal" : "differs";
    rows.push_back({line.what, derived, std::to_string(line.measured), sign});
  }
  return "\n" + table(style,
                      {{.title = title, .may_shrink = true},
                       {.title = "derived", .right = true},
                       {.title = "measured", .right = true},
                       {.title = ""}},
                      rows, 2);
}

std::string differences_text(const RealRun& run, const TextStyle& style) {
  if (run.differences.empty() || run.arithmetic != Arithmetic::canonical) return "";
  std::vector<std::vector<std::string>> rows;
  for (const Difference& d : run.differences) {
    if (rows.size() == kShown) break;
    rows.push_back({d.tensor, std::to_string(d.rank), index_of(d), std::to_string(d.step),
                    fmt::format("{:.9g}", d.expected), fmt::format("{:.9g}", d.found)});
  }
  std::string text = "\n" + table(style,
                                  {{.title = "tensor", .may_shrink = true},
                                   {.title = "rank", .right = true},
                                   {.title = "entry"},
                                   {.title = "step", .right = true},
                                   {.title = "one device", .right = true},
                                   {.title = "rank's", .right = true}},
                                  rows, 2);
  if (run.differences.size() > rows.size()) {
    text += fmt::format("  and {} more\n", run.differences.size() - rows.size());
  }
  return text;
}

std::string losses_text(const RunSheet& sheet, const TextStyle& style) {
  const RealRun& run = sheet.run;
  std::vector<std::vector<std::string>> rows;
  rows.reserve(run.steps.size());
  for (const StepLoss& s : run.steps) {
    rows.push_back({std::to_string(s.step), fmt::format("{:.12f}", s.one_device),
                    fmt::format("{:.12f}", s.ranks), s.equal ? "same bits" : "other bits"});
    if (sheet.tells_times) rows.back().push_back(fmt::format("{:.3f}", s.seconds));
  }
  if (rows.empty()) return "";
  std::vector<Column> columns = {{.title = "step", .right = true},
                                 {.title = "loss on one device", .right = true},
                                 {.title = "loss on all ranks", .right = true},
                                 {.title = "state"}};
  if (sheet.tells_times) columns.push_back({.title = "seconds", .right = true});
  return "\n" + table(style, columns, rows, 2);
}

std::string axes_of(const execute::WatchFinding& finding) {
  std::string text;
  for (const std::string& axis : finding.axes) text += (text.empty() ? "" : " ") + axis;
  return text.empty() ? "-" : text;
}

/// What the watch found, or that it found nothing.
std::string watched_text(const RunSheet& sheet, const TextStyle& style) {
  const RealRun& run = sheet.run;
  if (!sheet.is_watched || (run.stuck && run.watched.empty())) return "";
  if (run.watched.empty()) {
    return fmt::format("  watched            {} readings, all of them what was written\n",
                       run.watched_readings);
  }
  std::vector<std::vector<std::string>> rows;
  for (const execute::WatchFinding& f : run.watched) {
    if (rows.size() == kShown) break;
    rows.push_back({f.condition, f.tensor, axes_of(f), std::to_string(f.rank),
                    std::to_string(f.step), f.at + ": " + f.problem});
  }
  std::string text = "\n" + table(style,
                                  {{.title = "watched", .may_shrink = true},
                                   {.title = "tensor", .may_shrink = true},
                                   {.title = "axes"},
                                   {.title = "rank", .right = true},
                                   {.title = "step", .right = true},
                                   {.title = "where", .may_shrink = true}},
                                  rows, 2);
  if (run.watched.size() > rows.size()) {
    text += fmt::format("  and {} more\n", run.watched.size() - rows.size());
  }
  return text;
}

Json watched_json(const RunSheet& sheet) {
  if (!sheet.is_watched) return nullptr;
  Json findings = Json::array();
  for (const execute::WatchFinding& f : sheet.run.watched) {
    findings.push_back({{"condition", f.condition},
                        {"tensor", f.tensor},
                        {"axes", f.axes},
                        {"rank", f.rank},
                        {"step", f.step},
                        {"at", f.at},
                        {"problem", f.problem}});
  }
  return {{"readings", sheet.run.watched_readings}, {"findings", std::move(findings)}};
}

Json figures_json(const std::vector<Beside>& lines) {
  Json all = Json::array();
  for (const Beside& line : lines) {
    Json one{{"what", line.what}, {"derived_bytes", nullptr}, {"measured_bytes", line.measured}};
    if (line.derived) one["derived_bytes"] = *line.derived;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

std::string step_text(const StepLoss& step) {
  return fmt::format("step {} of {}: loss {:.9f}, {:.3g} s", step.step, step.last, step.ranks,
                     step.seconds);
}

std::string run_text(const RunSheet& sheet, const TextStyle& style) {
  const RealRun& run = sheet.run;
  std::string text = inked(style, sheet.is_good() ? Ink::green : Ink::red, heading_of(run)) + ": " +
                     sentence_of(run) + "\n";
  text += fmt::format("  mode               {}\n", name_of(run.arithmetic));
  text += fmt::format("  ranks              {}\n", ranks_text(run));
  if (!sheet.judged.run_as.empty()) text += "  run as             " + sheet.judged.run_as + "\n";
  if (!sheet.corpus.empty())
    text += "  corpus             " + sheet.corpus + ", a byte a word, modulo the vocabulary\n";
  text += losses_text(sheet, style) + differences_text(run, style);
  text += watched_text(sheet, style);
  if (run.stuck) return text;
  text += figures_text(sheet.sent, "bytes sent by a rank in a step", style);
  text += figures_text(sheet.held, "bytes in buffers of a rank", style);
  text += fmt::format("  the peak is reached at {} (rank {})\n", run.held.at, run.held.rank);
  text += fmt::format("  numbers of all ranks take {} bytes in this mode, a kernel's own {}\n",
                      run.canonical_bytes, run.workspace_bytes);
  if (sheet.tells_times && sheet.resident_bytes > 0) {
    text += fmt::format("  a process took {} bytes of memory at most\n", sheet.resident_bytes);
  }
  if (!sheet.saved.empty()) text += "  saved              " + sheet.saved + "\n";
  return text;
}

std::string run_json(const RunSheet& sheet, const std::vector<Finding>& rules) {
  const RealRun& run = sheet.run;
  Json out{{"schema", "placet.run/1"},
           {"equal", run.equal},
           {"mode", name_of(run.arithmetic)},
           {"ranks", run.ranks},
           {"rank_kind", name_of(run.rank_kind)},
           {"order", text_of(run.order)},
           {"run_as", sheet.judged.run_as},
           {"corpus", sheet.corpus.empty() ? Json(nullptr) : Json(sheet.corpus)}};
  out["steps"] = Json::array();
  for (const StepLoss& s : run.steps) {
    out["steps"].push_back({{"step", s.step},
                            {"loss", s.ranks},
                            {"loss_on_one_device", s.one_device},
                            {"equal", s.equal}});
    if (sheet.tells_times) out["steps"].back()["seconds"] = s.seconds;
  }
  out["compared"] = run.compared;
  out["differing"] = run.differing;
  out["digest"] = fmt::format("{:016x}", run.digest);
  out["largest_loss_difference"] = run.largest_difference;
  out["tolerance"] = run.tolerance;
  out["differences"] = Json::array();
  for (const Difference& d : run.differences) {
    out["differences"].push_back({{"tensor", d.tensor},
                                  {"rank", d.rank},
                                  {"index", d.index},
                                  {"step", d.step},
                                  {"expected", d.expected},
                                  {"found", d.found}});
  }
  out["stuck"] = run.stuck ? Json(*run.stuck) : Json(nullptr);
  out["sent"] = figures_json(sheet.sent);
  out["held"] = figures_json(sheet.held);
  out["peak"] = {{"rank", run.held.rank},
                 {"at", run.held.at},
                 {"host_bytes", run.held.host},
                 {"sample_bytes", run.held.samples}};
  out["numbers_bytes"] = run.canonical_bytes;
  out["workspace_bytes"] = run.workspace_bytes;
  if (sheet.tells_times) out["resident_bytes"] = sheet.resident_bytes;
  out["meanings"] = run.meanings;
  out["watched"] = watched_json(sheet);
  out["saved"] = sheet.saved.empty() ? Json(nullptr) : Json(sheet.saved);
  out["findings"] = findings_json(rules);
  return print_json(out);
}

}  // namespace placet
