// What the fullest device holds over the step, as a chart of pages.
#include "report/held_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "report/chart.h"
#include "report/html_parts.h"
#include "report/human.h"
#include "report/pipeline_picture.h"

namespace placet {
namespace {

constexpr std::size_t kHeldColumns = 500;
constexpr int kHeldHeight = 260;

/// Of a class: bytes at rest between steps by state, and what all micro-batches in flight keep.
struct Held {
  std::array<Bytes, 4> rest{};
  Bytes kept;
};

Held held_of(const MemoryClass& memory) {
  Held out{.rest = memory.at_rest};
  for (const MemoryTerm& term : memory.terms) {
    if (term.category == MemoryCategory::activations) out.kept += term.rest;
  }
  out.rest[static_cast<std::size_t>(State::activations)] = Bytes();
  return out;
}

/// Passes in flight in the middle of each of so many equal spans: from the beginning of a forward
/// pass to the end of the last work on the same micro-batch and chunk.
std::vector<int> in_flight(const std::vector<PipelinePass>& passes, Seconds step,
                           std::size_t columns) {
  std::map<std::pair<int, std::int64_t>, std::pair<Seconds, Seconds>> spans;
  for (const PipelinePass& pass : passes) {
    const auto [it, is_new] =
        spans.try_emplace({pass.chunk, pass.micro_batch}, pass.begin, pass.end);
    it->second.second = pass.end;
  }
  std::vector<int> change(columns + 1, 0);
  const auto first_after = [&](Seconds at) {
    return static_cast<std::size_t>(std::lround(at / step * static_cast<double>(columns)));
  };
  for (const auto& [which, span] : spans) {
    ++change.at(first_after(span.first));
    --change.at(first_after(span.second));
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  change.pop_back();
  return change;
}

std::string box(std::string_view css, double left, double right, double low, double high) {
  return fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>", css,
                     percent_text(left), percent_text(100 - high), percent_text(right - left),
                     percent_text(high - low));
}

std::string level(const ChartAxis& y, Bytes amount, std::string_view css) {
  const std::string at = percent_text(100 - y.percent_at(in_gigabytes(amount)));
  return fmt::format("<line class=\"{}\" x1=\"0%\" x2=\"100%\" y1=\"{}\" y2=\"{}\"/>", css, at, at);
}

/// Runs of equal counts as boxes on top of `low` percent, each `unit` percent high for one.
std::string kept_boxes(const std::vector<int>& counts, double low, double unit) {
  std::string text;
  for (std::size_t i = 0; i < counts.size();) {
    std::size_t end = i;
    while (end < counts.size() && counts[end] == counts[i]) ++end;
    const double width = 100 / static_cast<double>(counts.size());
    if (counts[i] > 0) {
      text += box("c-activations", width * static_cast<double>(i), width * static_cast<double>(end),
                  low, low + unit * counts[i]);
    }
    i = end;
  }
  return text;
}

}  // namespace

std::string held_html(const Judged& judged, const Simulation& simulated) {
  if (simulated.slices.empty() || simulated.left_out > 0) return {};
  if (judged.derivation.memory.empty()) return {};
  const MemoryClass& memory = fullest(judged.derivation);
  const Held held = held_of(memory);
  const std::vector<int> counts =
      in_flight(passes_of(simulated, memory.stage), simulated.step, kHeldColumns);
  const int most = std::ranges::max(counts);
  if (most == 0 || held.kept == Bytes()) return {};
  const double top = std::max(in_gigabytes(memory.peak), in_gigabytes(memory.capacity)) * 1.05;
  const ChartAxis y{"memory, GB", 0, top, [](double value) { return fmt::format("{:g}", value); }};
  const ChartAxis x = step_axis(simulated.step);
  std::string drawing;
  double low = 0;
  for (const State state : kStates) {
    const Bytes rest = held.rest[static_cast<std::size_t>(state)];
    if (rest == Bytes()) continue;
    const double high = low + y.percent_at(in_gigabytes(rest));
    drawing += box("c-" + std::string(name_of(state)), 0, 100, low, high);
    low = high;
  }
  drawing += kept_boxes(counts, low, y.percent_at(in_gigabytes(held.kept)) / most);
  drawing += level(y, memory.peak, "peak");
  if (memory.capacity > Bytes()) drawing += level(y, memory.capacity, "limit");
  const std::string name = class_name(*judged.job, memory);
  return section(
      "Memory over the step, " + escaped(name),
      chart("memory of " + name + " over the step", x, y, drawing, kHeldHeight) + legend() +
          fmt::format(
              "<p class=\"soft\">What rests between steps, and on top of it what micro-batches "
              "in flight keep, at most {} passes at once, each as an equal part. The dashed "
              "line is the peak, {}: what one unit needs while it runs is on top there{}.</p>\n",
              most, human_bytes(memory.peak),
              memory.capacity > Bytes()
                  ? "; the red one is the device's " + human_bytes(memory.capacity)
                  : std::string()));
}

ChartAxis step_axis(Seconds step) {
  return {"time in the step", 0, in_seconds(step), [](double value) {
            return value == 0 ? std::string("0") : human_seconds(seconds(value));
          }};
}

}  // namespace placet
