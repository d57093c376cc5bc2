// Charts of pages: an area that grows with the page, drawn as SVG in percent, with axes whose
// labels keep their size (HTML beside the drawing). Inside of report/html.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace placet {

/// One direction of a chart, in any unit: from `least` to `most`, which differ.
struct ChartAxis {
  std::string title;
  double least = 0;
  double most = 1;
  std::function<std::string(double)> label;  // of a tick

  /// Where a value stands, in percent of the axis.
  double percent_at(double value) const { return (value - least) / (most - least) * 100; }
};

/// Round values from the axis's least to its most, at most `most_ticks` (2 or more) of them, at one
/// distance: 1, 2 or 5 times a power of ten. Case: 0 to 5.24, at most 7: 0, 1, 2, 3, 4, 5.
std::vector<double> ticks_of(const ChartAxis& axis, std::size_t most_ticks);

/// The axis that holds all values with a margin beyond them; it begins at 0 where the values come
/// near it: where the least is below half of the most. REQUIRES: a value.
ChartAxis axis_over(std::string title, const std::vector<double>& values,
                    std::function<std::string(double)> label);

/// The labels of an axis, for below a drawing of its width.
std::string time_axis(const ChartAxis& x);

/// A drawing of the given height in pixels, with a grid, labels to the left and labels below.
/// `drawing` is SVG with places in percent of both axes; y="0%" is the upper edge. `name` is what a
/// screen reader says of it.
std::string chart(std::string_view name, const ChartAxis& x, const ChartAxis& y,
                  const std::string& drawing, int height);

/// A point of a scatter, with a short label above it (empty: none) and a longer one for the
/// pointer.
struct ChartPoint {
  double x = 0;
  double y = 0;
  std::string label;
  std::string title;
  std::string_view css;  // class of its colour
};

/// Points against two axes that hold them all; later ones lie over earlier ones. Empty where there
/// are fewer than two.
std::string scatter(std::string_view name, const std::string& x_title, const std::string& y_title,
                    const std::vector<ChartPoint>& points);

/// "12.34%".
std::string percent_text(double percent);

}  // namespace placet
