#include "report/experiment.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/json_parts.h"

namespace placet {
namespace {

std::string sent_of(const RunSheet& sheet) {
  return sheet.sent.empty() ? "-" : std::to_string(sheet.sent.back().measured);
}

std::string runs_text(const Experiment& experiment, const TextStyle& style) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(experiment.runs.size());
  for (const auto& [placement, sheet] : experiment.runs) {
    const RealRun& run = sheet.run;
    const double last = run.steps.empty() ? 0 : run.steps.back().ranks;
    rows.push_back({placement, std::string(name_of(run.arithmetic)), std::to_string(run.ranks),
                    fmt::format("{:.6f}", last), sent_of(sheet), std::to_string(run.held.rest),
                    std::to_string(run.held.peak),
                    fmt::format("{} of {}", run.differing, run.compared)});
  }
  return table(style,
               {{.title = "placement"},
                {.title = "mode"},
                {.title = "ranks", .right = true},
                {.title = "last loss", .right = true},
                {.title = "sent", .right = true},
                {.title = "at rest", .right = true},
                {.title = "peak", .right = true},
                {.title = "other bits", .right = true}},
               rows, 2);
}

std::string replayed_text(const Experiment& experiment, const TextStyle& style) {
  if (experiment.replayed.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  rows.reserve(experiment.replayed.size());
  for (const ReplayedBuffers& one : experiment.replayed) {
    rows.push_back({one.placement, std::to_string(one.rest), std::to_string(one.resident_rest),
                    std::to_string(one.peak), std::to_string(one.resident_peak)});
  }
  return fmt::format("  {} in its full size, the buffers of one rank made and freed:\n",
                     experiment.replayed.front().model) +
         table(style,
               {{.title = "placement"},
                {.title = "at rest", .right = true},
                {.title = "resident", .right = true},
                {.title = "peak", .right = true},
                {.title = "resident", .right = true}},
               rows, 2) +
         "  bytes in buffers, and of the pages that the system gave for them\n\n";
}

Json replayed_json(const Experiment& experiment) {
  Json all = Json::array();
  for (const ReplayedBuffers& one : experiment.replayed) {
    all.push_back({{"model", one.model},
                   {"placement", one.placement},
                   {"derived_rest_bytes", one.derived_rest},
                   {"derived_peak_bytes", one.derived_peak},
                   {"rest_bytes", one.rest},
                   {"peak_bytes", one.peak},
                   {"resident_rest_bytes", one.resident_rest},
                   {"resident_peak_bytes", one.resident_peak}});
  }
  return all;
}

}  // namespace

bool Experiment::holds() const { return std::ranges::all_of(facts, &ExperimentFact::holds); }

std::string experiment_text(const Experiment& experiment, const TextStyle& style) {
  std::string text = inked(style, Ink::bold, experiment.question) + "\n\n";
  text += runs_text(experiment, style) + "  bytes of one rank; sent in one step\n\n";
  text += replayed_text(experiment, style);
  if (!experiment.note.empty()) text += "  " + experiment.note + "\n\n";
  for (const ExperimentFact& fact : experiment.facts) {
    const Ink ink = fact.holds ? Ink::green : Ink::red;
    text += fmt::format("  {}  {}: {}", inked(style, ink, fact.holds ? "holds" : "FAILS"),
                        fact.what, fact.found);
    text += fact.found == fact.expected ? "\n" : fmt::format(" (expected {})\n", fact.expected);
  }
  return text;
}

std::string experiment_json(const Experiment& experiment) {
  Json out{{"schema", "placet.experiment/1"},
           {"experiment", experiment.name},
           {"question", experiment.question},
           {"holds", experiment.holds()}};
  out["facts"] = Json::array();
  for (const ExperimentFact& fact : experiment.facts) {
    out["facts"].push_back({{"what", fact.what},
                            {"expected", fact.expected},
                            {"found", fact.found},
                            {"holds", fact.holds}});
  }
  out["replayed"] = replayed_json(experiment);
  out["note"] = experiment.note.empty() ? Json(nullptr) : Json(experiment.note);
  out["runs"] = Json::array();
  for (const auto& [placement, sheet] : experiment.runs) {
    Json one = Json::parse(run_json(sheet));
    one["placement"] = placement;
    out["runs"].push_back(std::move(one));
  }
  return print_json(out);
}

}  // namespace placet
