#include "report/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/derivation_text.h"
#include "report/human.h"
#include "report/pipeline_picture.h"

namespace placet {
namespace {

constexpr std::size_t kTimeBarColumns = 24;
constexpr std::size_t kStageColumns = 16;
constexpr std::size_t kMostStages = 16;

/// Bars need room: on a narrow terminal words come first.
std::string bar_cell(const TextStyle& style, Ink ink, double part) {
  constexpr int kNarrow = 100;
  return style.width < kNarrow ? std::string() : bar(style, ink, part, kTimeBarColumns);
}

double share(Seconds part, Seconds whole) { return whole > Seconds() ? part / whole : 0; }

std::string axes_text(const Job& job, AxisMask axes) {
  std::string text;
  for (const std::string& name : axis_names(job, axes)) text += (text.empty() ? "" : " ") + name;
  return text;
}

Seconds compute_of(const TimeDerivation& time, std::string_view what) {
  Seconds sum;
  for (const TimeTerm& term : time.terms) {
    if (term.kind == TimeKind::compute && term.what == what) sum += term.time;
  }
  return sum;
}

/// What simulation adds to the estimate.
std::string simulated_line(const Timeline& timeline) {
  const Seconds estimate = timeline.time.step;
  const double more = timeline.undisturbed / estimate - 1;
  return fmt::format(
      "  simulated event by event: {}{}\n", human_seconds(timeline.undisturbed),
      more < 5e-4 ? ", as estimated" : fmt::format(", {:.1f} % above the estimate", more * 100));
}

std::string straggler_lines(const Timeline& timeline) {
  std::string text;
  for (const Straggler& straggler : timeline.stragglers) {
    text += fmt::format("  with stage {} slower by a factor of {:g}\n", straggler.stage,
                        straggler.factor);
  }
  if (text.empty()) return text;
  return text + fmt::format("  the simulated step takes {}, {:+.1f} %\n",
                            human_seconds(timeline.simulated.step),
                            (timeline.simulated.step / timeline.undisturbed - 1) * 100);
}

/// Which stage the others wait for.
std::string pace_line(const Simulation& simulated) {
  constexpr double kWorthSaying = 0.01;
  const Pace pace = pace_of(simulated);
  if (simulated.stages.size() < 2 || pace.above_mean < kWorthSaying) return {};
  return fmt::format("  stage {} sets the pace: it computes {:.1f} % longer than the mean\n",
                     pace.stage, pace.above_mean * 100);
}

std::string heading_text(const Timeline& timeline, const TextStyle& style) {
  const Judged& judged = timeline.judged;
  const TimeDerivation& time = timeline.time;
  const double devices = static_cast<double>(judged.derivation.devices);
  std::string text = inked(style, Ink::bold, "One step of " + judged.job->model.name) + "\n";
  text += "  " + judged.job->placement_text + " on " + judged.job->cluster->name + ", " +
          judged.job->engine_text + "\n";
  for (const std::string& note : judged.job->model.notes) {
    text += "  note: " + wrapped(style, note, 8) + "\n";
  }
  text +=
      fmt::format("  {} per step, {:.0f} tokens/s, {:.0f} per device\n", human_seconds(time.step),
                  rate_of(time.tokens, time.step), rate_of(time.tokens, time.step) / devices);
  text += fmt::format("  {:.1f} model TFLOP/s per device, MFU {}, HFU {}\n",
                      rate_of(time.model_flops, time.step) / devices / 1e12,
                      utilisation_text(utilisation(time)),
                      utilisation_text(hardware_utilisation(time)));
  if (utilisation(time) > 1) {
    text +=
        "  MFU counts attention over the whole sequence (12 L d s per token, PaLM's convention): "
        "with windows\n  or masks that hide most of it, MFU can pass 100 %\n";
  }
  text += "  bound by " + binding_text(*judged.job, time) + "\n";
  if (timeline.similar) text += "  " + similar_runs_text(*timeline.similar, style) + "\n";
  return text + simulated_line(timeline) + straggler_lines(timeline) +
         pace_line(timeline.simulated);
}

std::string terms_text(const Job& job, const TimeDerivation& time, const TextStyle& style) {
  std::vector<TimeTerm> terms = time.terms;
  std::stable_sort(terms.begin(), terms.end(),
                   [](const TimeTerm& a, const TimeTerm& b) { return a.time > b.time; });
  std::vector<std::vector<std::string>> rows;
  for (const TimeTerm& term : terms) {
    const double part = share(term.time, time.step);
    rows.push_back({std::string(name_of(term.kind)), name_of_term(job, term),
                    human_seconds(term.time), fmt::format("{:.1f} %", part * 100),
                    bar_cell(style, Ink::activations, part)});
  }
  return "\n" + table(style,
                      {{.title = "spent on"},
                       {.title = "what", .may_shrink = true},
                       {.title = "time", .right = true},
                       {.title = "of step", .right = true},
                       {.title = ""}},
                      rows, 0);
}

std::string stages_text(const Timeline& timeline, const TextStyle& style) {
  const Simulation& simulated = timeline.simulated;
  if (simulated.stages.size() < 2) return {};
  std::vector<std::vector<std::string>> rows;
  for (const int s : shown_stages(simulated.stages.size(), kMostStages)) {
    const SimulatedStage& stage = simulated.stages[static_cast<std::size_t>(s)];
    const Seconds working = computing(stage);
    rows.push_back({std::to_string(s), human_seconds(working), human_seconds(waiting(stage)),
                    human_seconds(stage.of(Doing::launch)), human_seconds(stage.idle),
                    human_seconds(stage.finished),
                    bar(style, Ink::parameters, share(working, simulated.step), kStageColumns)});
  }
  return "\n" + table(style,
                      {{.title = "stage", .right = true},
                       {.title = "computes", .right = true},
                       {.title = "messages", .right = true},
                       {.title = "host", .right = true},
                       {.title = "idle", .right = true},
                       {.title = "done at", .right = true},
                       {.title = ""}},
                      rows, 0);
}

std::string links_text(const Timeline& timeline, const TextStyle& style) {
  const std::vector<Seconds> busy = busy_links(timeline.parts, timeline.simulated);
  std::vector<std::vector<std::string>> rows;
  for (std::size_t l = 0; l < busy.size(); ++l) {
    if (busy[l] == Seconds()) continue;
    const double part = share(busy[l], timeline.simulated.step);
    rows.push_back({timeline.parts.links[l].name, human_seconds(busy[l]),
                    fmt::format("{:.1f} %", part * 100), bar_cell(style, Ink::transient, part)});
  }
  if (rows.empty()) return {};
  return "\n" + table(style,
                      {{.title = "link", .may_shrink = true},
                       {.title = "in use", .right = true},
                       {.title = "of step", .right = true},
                       {.title = ""}},
                      rows, 0);
}

}  // namespace

std::string human_seconds(Seconds time) {
  const double s = in_seconds(time);
  if (s >= 1) return fmt::format("{:.3g} s", s);
  if (s >= 1e-3) return fmt::format("{:.3g} ms", s * 1e3);
  return fmt::format("{:.3g} us", s * 1e6);
}

std::string binding_text(const Job& job, const TimeDerivation& time) {
  std::vector<std::pair<Seconds, std::string>> parts = {
      {compute_of(time, "products") + compute_of(time, "attention"), "compute"},
      {compute_of(time, "streams"), "memory bandwidth"},
      {total_of(time, TimeKind::bubble), "waiting for other stages"},
      {total_of(time, TimeKind::launch) + total_of(time, TimeKind::host), "the host"},
      {total_of(time, TimeKind::update), "the update"}};
  for (const auto& [axes, seconds] : exposed_by_axes(job, time)) {
    parts.emplace_back(seconds, "communication over " + axes);
  }
  const auto most = std::max_element(
      parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return most->second;
}

std::string similar_runs_text(const ErrorBand& band, const TextStyle& style) {
  std::string kind = band.engine.empty() ? "any engine" : band.engine;
  if (!band.device.empty()) kind += " on " + band.device;
  kind += band.has_experts.value_or(false) ? ", with experts" : ", dense";
  std::string text = fmt::format("similar runs: {}{:.1f} % in the mean", style.unicode ? "±" : "+-",
                                 band.mean_abs * 100);
  constexpr double kMostlyBias = 0.7;
  if (std::abs(band.bias) > kMostlyBias * band.mean_abs) {
    text += fmt::format(", measured {:.1f} % {}", std::abs(band.bias) * 100,
                        band.bias < 0 ? "slower" : "faster");
  }
  return text + fmt::format(" ({} runs of {})", band.rows, kind);
}

std::string timeline_text(const Timeline& timeline, const TextStyle& style) {
  std::string text = heading_text(timeline, style);
  const std::string picture = picture_text(timeline.simulated, style);
  if (!picture.empty()) text += "\n" + picture;
  text += terms_text(*timeline.judged.job, timeline.time, style) + stages_text(timeline, style) +
          links_text(timeline, style);
  if (!timeline.findings.empty()) text += "\n" + findings_text(timeline.findings, style);
  while (text.ends_with("\n\n")) text.pop_back();
  return text + "\n" + wrapped(style, verdict_of(timeline.judged.derivation), 0) + "\n";
}

std::vector<Seconds> busy_links(const StepParts& parts, const Simulation& simulated) {
  std::vector<Seconds> busy(parts.links.size());
  for (const SimulatedLink& link : simulated.links) {
    Seconds& most = busy[static_cast<std::size_t>(link.link)];
    most = std::max(most, link.busy);
  }
  return busy;
}

Seconds computing(const SimulatedStage& stage) {
  return stage.of(Doing::forward) + stage.of(Doing::recomputation) + stage.of(Doing::backward) +
         stage.of(Doing::weights);
}

Seconds waiting(const SimulatedStage& stage) {
  return stage.of(Doing::collective) + stage.of(Doing::gather) + stage.of(Doing::send) +
         stage.of(Doing::reduce) + stage.of(Doing::after);
}

Pace pace_of(const Simulation& simulated) {
  Pace pace;
  Seconds most;
  Seconds sum;
  for (std::size_t s = 0; s < simulated.stages.size(); ++s) {
    const Seconds own = computing(simulated.stages[s]);
    if (own > most) pace.stage = static_cast<int>(s);
    most = std::max(most, own);
    sum += own;
  }
  const double mean = in_seconds(sum) / static_cast<double>(simulated.stages.size());
  if (mean > 0) pace.above_mean = in_seconds(most) / mean - 1;
  return pace;
}

double rate_of(double amount, Seconds time) {
  return time > Seconds() ? amount / in_seconds(time) : 0;
}

std::string name_of_term(const Job& job, const TimeTerm& term) {
  std::string text(term.what);
  if (!term.unit.empty()) text += " of " + std::string(term.unit);
  if (term.axes != 0) text += " over " + axes_text(job, term.axes);
  if (!term.phase.empty()) text += ", " + std::string(term.phase);
  return text;
}

std::vector<std::pair<std::string, Seconds>> exposed_by_axes(const Job& job,
                                                             const TimeDerivation& time) {
  std::map<std::string, Seconds> by;
  for (const TimeTerm& term : time.terms) {
    if (term.kind != TimeKind::exposed) continue;
    by[term.axes == 0 ? "host" : axes_text(job, term.axes)] += term.time;
  }
  const Seconds sent = total_of(time, TimeKind::send);
  AxisMask layers = 0;
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    if (job.placement.axes[a].how.cut == Cut::layer) layers |= axis_bit(static_cast<int>(a));
  }
  if (sent > Seconds()) by[axes_text(job, layers)] += sent;
  return {by.begin(), by.end()};
}

}  // namespace placet
