#include <fmt/format.h>

#include <algorithm>

#include "report/chart.h"
#include "report/held_html.h"
#include "report/html_parts.h"
#include "report/human.h"
#include "report/pipeline_picture.h"
#include "report/timeline.h"

namespace placet {
namespace {

constexpr std::size_t kMostPictureRows = 64;
constexpr std::size_t kColumns = 1000;
constexpr std::size_t kRowHeight = 18;  // pixels
constexpr std::size_t kRowStep = 22;
constexpr double kDigitWidth = 0.8;  // percent of a page that is as wide as it gets

std::string text_fact(std::string_view name, const std::string& value) {
  return fact(name, escaped(value));
}

std::string heading_html(const Timeline& timeline) {
  const TimeDerivation& time = timeline.time;
  const Job& job = *timeline.judged.job;
  const double devices = static_cast<double>(timeline.judged.derivation.devices);
  std::string text = "<h1>One step of " + escaped(job.model.name) + "</h1>\n<dl class=\"facts\">";
  text += text_fact("placement", job.placement_text) + text_fact("cluster", job.cluster->name) +
          text_fact("engine", job.engine_text) +
          text_fact("step", human_seconds(time.step) + " estimated, " +
                                human_seconds(timeline.simulated.step) + " simulated");
  for (const Straggler& straggler : timeline.stragglers) {
    text += text_fact("straggler", fmt::format("stage {} slower by a factor of {:g}",
                                               straggler.stage, straggler.factor));
  }
  text += text_fact("throughput", fmt::format("{:.0f} tokens/s, {:.0f} per device",
                                              rate_of(time.tokens, time.step),
                                              rate_of(time.tokens, time.step) / devices));
  text += text_fact("MFU", utilisation_text(utilisation(time))) +
          text_fact("HFU", utilisation_text(hardware_utilisation(time))) +
          text_fact("bound by", binding_text(job, time));
  return text + "</dl>\n";
}

std::string rectangle(const Cell& cell, std::size_t from, std::size_t to, std::size_t row,
                      const std::string& title) {
  constexpr double kPart = 100.0 / kColumns;
  return fmt::format(
      "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
      std::string(look_of(cell.shade).css) + (cell.odd ? " odd" : ""),
      percent_text(static_cast<double>(from) * kPart), row * kRowStep,
      percent_text(static_cast<double>(to - from) * kPart), kRowHeight, escaped(title));
}

/// The number of its micro-batch in each pass that has room for it.
std::string numbers_html(const Simulation& simulated, int stage, std::size_t row) {
  std::string text;
  for (const PipelinePass& pass : passes_of(simulated, stage)) {
    const std::string number = std::to_string(pass.micro_batch);
    const double width = (pass.end - pass.begin) / simulated.step * 100;
    if (width < kDigitWidth * static_cast<double>(number.size() + 1)) continue;
    text += fmt::format("<text class=\"number\" x=\"{}\" y=\"{}\">{}</text>",
                        percent_text((pass.begin + pass.end) / 2.0 / simulated.step * 100),
                        row * kRowStep + kRowHeight - 5, number);
  }
  return text;
}

std::string row_html(const Simulation& simulated, int stage, std::size_t number) {
  const std::vector<Cell> row = row_of(simulated, stage, {}, simulated.step, kColumns);
  const Seconds column = simulated.step / static_cast<double>(kColumns);
  std::string text;
  for (std::size_t i = 0; i < row.size();) {
    std::size_t end = i;
    while (end < row.size() && row[end] == row[i]) ++end;
    if (row[i].shade != Shade::idle) {
      text += rectangle(row[i], i, end, number,
                        fmt::format("stage {}: {}, from {}", stage, look_of(row[i].shade).name,
                                    human_seconds(column * static_cast<double>(i))));
    }
    i = end;
  }
  return text + numbers_html(simulated, stage, number);
}

std::string picture_legend() {
  std::string text = "<div class=\"legend\">";
  for (int i = 0; i < kShadeCount; ++i) {
    const ShadeLook& look = look_of(static_cast<Shade>(i));
    text += fmt::format("<span><i class=\"{}\"></i>{}</span>", look.css, look.name);
  }
  return text + "</div>\n";
}

std::string picture_html(const Simulation& simulated) {
  if (simulated.slices.empty() || simulated.left_out > 0) return {};
  const std::vector<int> stages = shown_stages(simulated.stages.size(), kMostPictureRows);
  std::string body = "<div class=\"pipeline\"><div class=\"stages\">";
  for (const int stage : stages) body += fmt::format("<span>stage {}</span>", stage);
  body += fmt::format(
      "</div><svg role=\"img\" aria-label=\"what each stage does\" style=\"height:{}px\">",
      stages.size() * kRowStep);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    body += fmt::format("<rect class=\"s-idle\" x=\"0\" y=\"{}\" width=\"100%\" height=\"{}\"/>",
                        i * kRowStep, kRowHeight);
    body += row_html(simulated, stages[i], i);
  }
  body += "</svg><span></span>" + time_axis(step_axis(simulated.step)) + "</div>\n";
  return section(
      simulated.stages.size() == 1 ? "The step" : "The pipeline",
      body + picture_legend() + "<p class=\"soft\">Numbers are those of micro-batches.</p>\n");
}

/// As wide as its cell.
std::string cell_bar(double part, std::string_view colour) {
  return share_bar(part, colour, "style=\"width:100%;height:12px\"");
}

std::string terms_html(const Timeline& timeline) {
  const TimeDerivation& time = timeline.time;
  std::vector<TimeTerm> terms = time.terms;
  std::stable_sort(terms.begin(), terms.end(),
                   [](const TimeTerm& a, const TimeTerm& b) { return a.time > b.time; });
  std::vector<std::vector<std::string>> rows;
  for (const TimeTerm& term : terms) {
    const double part = term.time / time.step;
    rows.push_back({escaped(name_of(term.kind)), escaped(name_of_term(*timeline.judged.job, term)),
                    human_seconds(term.time), fmt::format("{:.1f} %", part * 100),
                    cell_bar(part, "c-activations")});
  }
  return section(
      "Where the time goes",
      html_table({{"spent on"}, {"what"}, {"time", true}, {"of step", true}, {""}}, rows));
}

std::string stages_html(const Timeline& timeline) {
  const Simulation& simulated = timeline.simulated;
  if (simulated.stages.size() < 2) return {};
  std::vector<std::vector<std::string>> rows;
  for (std::size_t s = 0; s < simulated.stages.size(); ++s) {
    const SimulatedStage& stage = simulated.stages[s];
    rows.push_back({std::to_string(s), human_seconds(computing(stage)),
                    human_seconds(waiting(stage)), human_seconds(stage.of(Doing::launch)),
                    human_seconds(stage.idle), human_seconds(stage.finished)});
  }
  return section("Stages", html_table({{"stage", true},
                                       {"computes", true},
                                       {"waits for messages", true},
                                       {"for the host", true},
                                       {"for stages", true},
                                       {"done at", true}},
                                      rows));
}

std::string links_html(const Timeline& timeline) {
  const std::vector<Seconds> busy = busy_links(timeline.parts, timeline.simulated);
  std::vector<std::vector<std::string>> rows;
  for (std::size_t l = 0; l < busy.size(); ++l) {
    if (busy[l] == Seconds()) continue;
    const double part = busy[l] / timeline.simulated.step;
    rows.push_back({escaped(timeline.parts.links[l].name), human_seconds(busy[l]),
                    fmt::format("{:.1f} %", part * 100), cell_bar(part, "c-transient")});
  }
  if (rows.empty()) return {};
  return section("Links, of the busiest device",
                 html_table({{"link"}, {"in use", true}, {"of step", true}, {""}}, rows));
}

}  // namespace

std::string timeline_html(const Timeline& timeline) {
  const std::string answer =
      fmt::format("{} per step, {:.0f} tokens/s, MFU {}; ", human_seconds(timeline.time.step),
                  rate_of(timeline.time.tokens, timeline.time.step),
                  utilisation_text(utilisation(timeline.time)));
  return page("One step of " + timeline.judged.job->model.name,
              heading_html(timeline) + verdict_html(timeline.judged.derivation, answer) +
                  picture_html(timeline.simulated) +
                  held_html(timeline.judged, timeline.simulated) + terms_html(timeline) +
                  stages_html(timeline) + links_html(timeline) + findings_html(timeline.findings));
}

}  // namespace placet
