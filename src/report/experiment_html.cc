// An experiment as a page.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/chart.h"
#include "report/experiment.h"
#include "report/html_parts.h"
#include "report/human.h"

namespace placet {
namespace {

/// A figure of a placement, as a bar beside others.
struct BarOfBytes {
  std::string label;
  std::int64_t bytes = 0;
  std::string_view colour;
};

std::string bars_html(const std::vector<BarOfBytes>& bars) {
  std::int64_t most = 1;
  for (const BarOfBytes& one : bars) most = std::max(most, one.bytes);
  std::string body = "<div class=\"bars\">";
  for (const BarOfBytes& one : bars) {
    const double part = static_cast<double>(one.bytes) / static_cast<double>(most);
    body += fmt::format("<span>{}</span>{}<span class=\"n\">{}</span>", escaped(one.label),
                        share_bar(part, one.colour, "style=\"width:100%;height:22px\""),
                        human_bytes(bytes(one.bytes)));
  }
  return body + "</div>\n";
}

std::string memory_html(const Experiment& experiment) {
  std::vector<BarOfBytes> small;
  for (const ExperimentRun& one : experiment.runs) {
    const HeldBytes& held = one.sheet.run.held;
    small.push_back({one.placement + ", at rest", held.rest, "c-optimizer"});
    small.push_back({one.placement + ", at the peak", held.peak, "c-activations"});
  }
  std::string text = section("What a rank holds, of the model that trained here", bars_html(small));
  if (experiment.replayed.empty()) return text;
  std::vector<BarOfBytes> large;
  for (const ReplayedBuffers& one : experiment.replayed) {
    large.push_back({one.placement + ", at rest", one.rest, "c-optimizer"});
    large.push_back({one.placement + ", at the peak", one.peak, "c-activations"});
    large.push_back({"pages of the system then", one.resident_peak, "c-transient"});
  }
  return text + section("The buffers of one rank of " + escaped(experiment.replayed[0].model) +
                            " in its full size, made and freed as its step does",
                        bars_html(large));
}

std::string sent_html(const Experiment& experiment) {
  std::vector<BarOfBytes> bars;
  for (const ExperimentRun& one : experiment.runs) {
    for (const Beside& line : one.sheet.sent) {
      if (line.what == "in all") continue;
      bars.push_back({one.placement + ", " + line.what, line.measured, "c-parameters"});
    }
  }
  return section("What a rank sends in a step, counted at the communicator", bars_html(bars));
}

/// How far the loss of all ranks is from that of one device, as a power of ten; equal ones at the
/// lower edge.
constexpr double kEqual = -18;
double distance_of(const StepLoss& step) {
  const double apart = std::fabs(step.ranks - step.one_device) / std::fabs(step.one_device);
  return apart > 0 ? std::max(std::log10(apart), kEqual) : kEqual;
}

std::string distances_html(const Experiment& experiment) {
  std::vector<ChartPoint> points;
  for (const ExperimentRun& one : experiment.runs) {
    const RealRun& run = one.sheet.run;
    const bool exact = run.arithmetic == Arithmetic::canonical;
    for (const StepLoss& step : run.steps) {
      const double far = distance_of(step);
      points.push_back(
          {.x = static_cast<double>(step.step),
           .y = far,
           .label = {},
           .title = fmt::format("{}, step {}: {}", name_of(run.arithmetic), step.step,
                                far > kEqual ? fmt::format("{:.1e}", std::pow(10, far)) : "equal"),
           .css = exact ? "c-parameters" : "c-activations"});
    }
  }
  return section("How far the loss is from that of one device",
                 scatter("distance of the losses by step", "step",
                         "power of ten of its part of the loss; -18: equal", points) +
                     "<p class=\"legend\"><span><i class=\"c-parameters\"></i>exact sums</span>"
                     "<span><i class=\"c-activations\"></i>plain f32</span></p>\n");
}

std::string facts_html(const Experiment& experiment) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(experiment.facts.size());
  for (const ExperimentFact& fact : experiment.facts) {
    rows.push_back({escaped(fact.what), escaped(fact.expected), escaped(fact.found),
                    fact.holds ? "holds" : "FAILS"});
  }
  return section("Figures", html_table({{""}, {"theory", true}, {"found", true}, {""}}, rows));
}

}  // namespace

std::string experiment_page(const Experiment& experiment) {
  const auto holding = std::ranges::count_if(experiment.facts, &ExperimentFact::holds);
  std::string body = fmt::format(
      "<h1>{}</h1>\n<div class=\"card verdict {}\">{} of {} figures are those of the "
      "theory</div>\n",
      escaped(experiment.question), experiment.holds() ? "good" : "bad", holding,
      experiment.facts.size());
  if (experiment.name == "memory") body += memory_html(experiment);
  if (experiment.name == "communication") body += sent_html(experiment);
  if (experiment.name == "integrity") body += distances_html(experiment);
  if (!experiment.note.empty()) body += "<p class=\"soft\">" + escaped(experiment.note) + "</p>\n";
  return page(experiment.name, body + facts_html(experiment));
}

}  // namespace placet
