#include "report/pipeline_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/human.h"
#include "report/timeline.h"

namespace placet {
namespace {

constexpr std::size_t kMostRows = 16;
constexpr std::size_t kLabelColumns = 10;

constexpr std::array<ShadeLook, kShadeCount> kLooks = {
    ShadeLook{.letter = '.', .name = "waits for stages", .css = "s-idle", .ink = Ink::faint},
    ShadeLook{.letter = 'F', .name = "forward", .css = "s-forward", .ink = Ink::parameters},
    ShadeLook{.letter = 'R', .name = "recomputation", .css = "s-again", .ink = Ink::transient},
    ShadeLook{.letter = 'B', .name = "backward", .css = "s-backward", .ink = Ink::activations},
    ShadeLook{.letter = 'W', .name = "weights' part", .css = "s-weights", .ink = Ink::optimizer},
    ShadeLook{.letter = 'c', .name = "waits for messages", .css = "s-message", .ink = Ink::yellow},
    ShadeLook{.letter = 'h', .name = "waits for the host", .css = "s-host", .ink = Ink::red},
    ShadeLook{.letter = 'u', .name = "update", .css = "s-update", .ink = Ink::overhead}};

/// Parts of a column by shade, and of even micro-batches and of odd ones.
using Sums = std::array<std::array<double, 2>, kShadeCount>;

/// Seconds of each shade in each column.
void add_slice(std::vector<Sums>& sums, const Slice& slice, double begin, double width) {
  const auto shade = static_cast<std::size_t>(shade_of(slice.doing));
  const double from = std::max(0.0, (in_seconds(slice.begin) - begin) / width);
  const double to =
      std::min(static_cast<double>(sums.size()), (in_seconds(slice.end) - begin) / width);
  for (auto c = static_cast<std::size_t>(from); static_cast<double>(c) < to; ++c) {
    const double left = std::max(from, static_cast<double>(c));
    const double right = std::min(to, static_cast<double>(c + 1));
    if (right > left) sums[c][shade][slice.micro_batch % 2 == 1 ? 1 : 0] += right - left;
  }
}

Cell most_of(Sums sums) {
  double busy = 0;
  for (const auto& parts : sums) busy += parts[0] + parts[1];
  sums[0][0] += std::max(0.0, 1 - busy);
  const auto most = std::ranges::max_element(
      sums, {}, [](const std::array<double, 2>& parts) { return parts[0] + parts[1]; });
  return {static_cast<Shade>(most - sums.begin()), (*most)[1] > (*most)[0]};
}

bool is_work(Shade shade) {
  return shade == Shade::forward || shade == Shade::again || shade == Shade::backward ||
         shade == Shade::weights;
}

/// Work on odd micro-batches is written small, so that one can be told from the next.
char letter_of(const Cell& cell) {
  const char letter = look_of(cell.shade).letter;
  return cell.odd && is_work(cell.shade) ? static_cast<char>(letter - 'A' + 'a') : letter;
}

/// Letters of one shade share an ink.
std::string drawn(const TextStyle& style, const std::vector<Cell>& row) {
  std::string text;
  for (std::size_t i = 0; i < row.size();) {
    std::string run;
    std::size_t end = i;
    for (; end < row.size() && row[end].shade == row[i].shade; ++end) run += letter_of(row[end]);
    text += inked(style, look_of(row[i].shade).ink, run);
    i = end;
  }
  return text;
}

std::string label(int stage) { return padded_left("stage " + std::to_string(stage), 8) + "  "; }

/// "0" on the left and the end on the right.
std::string axis(Seconds begin, Seconds end, std::size_t columns) {
  const std::string left = human_seconds(begin);
  const std::string right = human_seconds(end);
  const std::size_t used = columns_of(left) + columns_of(right);
  const std::size_t gap = columns > used ? columns - used : 1;
  return std::string(kLabelColumns, ' ') + left + std::string(gap, ' ') + right + "\n";
}

struct Window {
  Seconds begin, end;
};

std::string rows_text(const Simulation& simulated, const TextStyle& style, const Window& window,
                      std::array<bool, kShadeCount>& seen) {
  const auto columns = static_cast<std::size_t>(style.width) - kLabelColumns;
  std::string text;
  for (const int stage : shown_stages(simulated.stages.size(), kMostRows)) {
    const std::vector<Cell> row = row_of(simulated, stage, window.begin, window.end, columns);
    for (const Cell& cell : row) seen[static_cast<std::size_t>(cell.shade)] = true;
    text += label(stage) + drawn(style, row) + "\n";
  }
  return text + axis(window.begin, window.end, columns);
}

std::string legend_text(const TextStyle& style, const std::array<bool, kShadeCount>& seen) {
  std::string text;
  std::size_t column = kLabelColumns;
  for (std::size_t i = 0; i < kLooks.size(); ++i) {
    if (!seen[i]) continue;
    const std::size_t width = kLooks[i].name.size() + 4;
    if (column + width > static_cast<std::size_t>(style.width)) {
      text += "\n" + std::string(kLabelColumns, ' ');
      column = kLabelColumns;
    }
    text += inked(style, kLooks[i].ink, std::string(1, kLooks[i].letter)) + " " +
            std::string(kLooks[i].name) + "  ";
    column += width;
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return std::string(kLabelColumns, ' ') + text + "\n" + std::string(kLabelColumns, ' ') +
         "small letters: micro-batches of odd number\n";
}

/// The pass of a stage's first micro-batch, in seconds: from its first slice on, whatever it waits
/// for.
double first_pass(const Simulation& simulated, int stage) {
  double sum = 0;
  for (const Slice& slice : simulated.slices) {
    if (slice.stage != stage || slice.lane != Lane::compute) continue;
    if (slice.doing == Doing::send) continue;
    if (slice.micro_batch != 0 || slice.chunk != 0) break;
    sum += in_seconds(slice.end - slice.begin);
  }
  return sum;
}

Seconds shortest_pass(const Simulation& simulated) {
  double shortest = in_seconds(simulated.step);
  for (std::size_t s = 0; s < simulated.stages.size(); ++s) {
    const double sum = first_pass(simulated, static_cast<int>(s));
    if (sum > 0) shortest = std::min(shortest, sum);
  }
  return seconds(shortest);
}

}  // namespace

Shade shade_of(Doing doing) {
  switch (doing) {
    case Doing::forward:
      return Shade::forward;
    case Doing::recomputation:
      return Shade::again;
    case Doing::backward:
      return Shade::backward;
    case Doing::weights:
      return Shade::weights;
    case Doing::collective:
    case Doing::gather:
    case Doing::send:
    case Doing::reduce:
    case Doing::after:
      return Shade::message;
    case Doing::launch:
    case Doing::step:
      return Shade::host;
    case Doing::wait:
      return Shade::idle;
    case Doing::update:
      return Shade::update;
  }
  return Shade::idle;
}

const ShadeLook& look_of(Shade shade) { return kLooks[static_cast<std::size_t>(shade)]; }

std::vector<int> shown_stages(std::size_t stages, std::size_t most) {
  std::vector<int> out;
  const std::size_t rows = std::min(stages, most);
  for (std::size_t i = 0; i < rows; ++i) {
    out.push_back(static_cast<int>(rows < 2 ? 0 : i * (stages - 1) / (rows - 1)));
  }
  return out;
}

std::vector<Cell> row_of(const Simulation& simulated, int stage, Seconds begin, Seconds end,
                         std::size_t columns) {
  std::vector<Sums> sums(columns, Sums{});
  const double width = in_seconds(end - begin) / static_cast<double>(columns);
  for (const Slice& slice : simulated.slices) {
    if (slice.stage != stage || slice.lane != Lane::compute) continue;
    add_slice(sums, slice, in_seconds(begin), width);
  }
  std::vector<Cell> row;
  row.reserve(columns);
  for (const Sums& sum : sums) row.push_back(most_of(sum));
  return row;
}

std::vector<PipelinePass> passes_of(const Simulation& simulated, int stage) {
  std::vector<PipelinePass> out;
  for (const Slice& slice : simulated.slices) {
    if (slice.stage != stage || slice.lane != Lane::compute) continue;
    if (slice.micro_batch < 0 || !is_work(shade_of(slice.doing))) continue;
    const bool forward = slice.doing == Doing::forward;
    const bool goes_on = !out.empty() && out.back().forward == forward &&
                         out.back().chunk == slice.chunk &&
                         out.back().micro_batch == slice.micro_batch;
    if (goes_on) {
      out.back().end = slice.end;
    } else {
      out.push_back({forward, slice.chunk, slice.micro_batch, slice.begin, slice.end});
    }
  }
  return out;
}

std::string picture_text(const Simulation& simulated, const TextStyle& style) {
  if (simulated.slices.empty() || simulated.left_out > 0) return {};
  std::array<bool, kShadeCount> seen{};
  const std::size_t stages = simulated.stages.size();
  std::string text = inked(style, Ink::bold, stages == 1 ? "The step" : "The pipeline") + "\n";
  text += rows_text(simulated, style, {.begin = {}, .end = simulated.step}, seen);
  const auto columns = static_cast<double>(style.width) - static_cast<double>(kLabelColumns);
  const Seconds pass = shortest_pass(simulated);
  if (pass > Seconds() && simulated.step / pass > columns / 2) {
    text += "  its beginning\n";
    text += rows_text(simulated, style, {.begin = {}, .end = pass * (columns / 4)}, seen);
  }
  if (stages > kMostRows) {
    text += fmt::format("{:10}{} of {} stages\n", "", kMostRows, stages);
  }
  return text + legend_text(style, seen);
}

}  // namespace placet
