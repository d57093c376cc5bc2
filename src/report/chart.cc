#include "report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/html_parts.h"

namespace placet {
namespace {

constexpr std::size_t kTicks = 7;
constexpr int kScatterHeight = 260;  // pixels
constexpr double kMargin = 0.08;     // of the span, beyond the outermost values

std::string grid_line(double x1, double y1, double x2, double y2) {
  return fmt::format("<line class=\"grid\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
                     percent_text(x1), percent_text(y1), percent_text(x2), percent_text(y2));
}

std::string labels(std::string_view css, std::string_view side, const ChartAxis& axis,
                   bool turned) {
  std::string text = fmt::format("<div class=\"{}\">", css);
  for (const double tick : ticks_of(axis, kTicks)) {
    const double at = axis.percent_at(tick);
    text += fmt::format("<span style=\"{}:{}\">{}</span>", side,
                        percent_text(turned ? 100 - at : at), escaped(axis.label(tick)));
  }
  return text + "</div>";
}

}  // namespace

std::string percent_text(double percent) { return fmt::format("{:.2f}%", percent); }

std::vector<double> ticks_of(const ChartAxis& axis, std::size_t most_ticks) {
  const double span = axis.most - axis.least;
  const double least_step = span / static_cast<double>(most_ticks);
  double step = std::pow(10, std::floor(std::log10(least_step)));
  for (const double factor : {2.0, 2.5, 2.0}) {  // 1, 2, 5, 10
    if (step >= least_step) break;
    step *= factor;
  }
  // Counted, not added up: values stay as round as they can be.
  const auto first = static_cast<std::int64_t>(std::ceil(axis.least / step));
  const auto last = static_cast<std::int64_t>(std::floor(axis.most / step));
  std::vector<double> out;
  for (std::int64_t i = first; i <= last && out.size() < most_ticks; ++i) {
    out.push_back(static_cast<double>(i) * step);
  }
  return out;
}

ChartAxis axis_over(std::string title, const std::vector<double>& values,
                    std::function<std::string(double)> label) {
  const auto [least, most] = std::ranges::minmax(values);
  const double margin = std::max((most - least) * kMargin, std::abs(most) * 0.01);
  ChartAxis axis{std::move(title), least - margin, most + margin, std::move(label)};
  if (least >= 0 && least < most / 2) axis.least = 0;
  if (axis.most <= axis.least) axis.most = axis.least + 1;
  return axis;
}

std::string time_axis(const ChartAxis& x) { return labels("x-axis", "left", x, false); }

std::string chart(std::string_view name, const ChartAxis& x, const ChartAxis& y,
                  const std::string& drawing, int height) {
  std::string grid;
  for (const double tick : ticks_of(x, kTicks)) {
    grid += grid_line(x.percent_at(tick), 0, x.percent_at(tick), 100);
  }
  for (const double tick : ticks_of(y, kTicks)) {
    grid += grid_line(0, 100 - y.percent_at(tick), 100, 100 - y.percent_at(tick));
  }
  return fmt::format(
      "<p class=\"axis-title\">{}</p><div class=\"chart\">{}<svg role=\"img\" aria-label=\"{}\" "
      "style=\"height:{}px\">{}{}</svg><span></span>{}</div><p class=\"axis-title right\">{}</p>\n",
      escaped(y.title), labels("y-axis", "top", y, true), escaped(name), height, grid, drawing,
      time_axis(x), escaped(x.title));
}

std::string scatter(std::string_view name, const std::string& x_title, const std::string& y_title,
                    const std::vector<ChartPoint>& points) {
  if (points.size() < 2) return {};
  std::vector<double> across;
  std::vector<double> upwards;
  for (const ChartPoint& point : points) {
    across.push_back(point.x);
    upwards.push_back(point.y);
  }
  const auto label = [](double value) { return fmt::format("{:.4g}", value); };
  const ChartAxis x = axis_over(x_title, across, label);
  const ChartAxis y = axis_over(y_title, upwards, label);
  std::string drawing;
  for (const ChartPoint& point : points) {
    const std::string left = percent_text(x.percent_at(point.x));
    const std::string top = percent_text(100 - y.percent_at(point.y));
    drawing +=
        fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"5\"><title>{}</title></circle>",
                    point.css, left, top, escaped(point.title));
    if (point.label.empty()) continue;
    drawing += fmt::format("<text class=\"point-label\" x=\"{}\" y=\"{}\" dy=\"-9\">{}</text>",
                           left, top, escaped(point.label));
  }
  return chart(name, x, y, drawing, kScatterHeight);
}

}  // namespace placet
