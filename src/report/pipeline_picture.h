// The pipeline as a picture: one row per stage, time from left to right.
#pragma once

#include <string>
#include <vector>

#include "report/style.h"
#include "simulate/simulation.h"

namespace placet {

/// What rows tell apart.
enum class Shade : unsigned char { idle, forward, again, backward, weights, message, host, update };
inline constexpr int kShadeCount = 8;
Shade shade_of(Doing doing);

struct ShadeLook {
  char letter = '.';
  std::string_view name;  // "forward", "waits for messages", ...
  std::string_view css;   // class of the colour in pages
  Ink ink = Ink::plain;
};
const ShadeLook& look_of(Shade shade);

/// The stages that rows show: all, or `most` of them at even distances, first and last among them.
std::vector<int> shown_stages(std::size_t stages, std::size_t most);

/// What a stage does in a span of time: whatever takes most of it.
struct Cell {
  Shade shade = Shade::idle;
  bool odd = false;  // for a micro-batch of odd number
  friend bool operator==(const Cell&, const Cell&) = default;
};

/// In each of `columns` equal spans from `begin` to `end`.
std::vector<Cell> row_of(const Simulation& simulated, int stage, Seconds begin, Seconds end,
                         std::size_t columns);

/// One pass of a micro-batch through what a stage hosts: forward, or backward with what it computes
/// again and the weights' part that follows at once.
struct PipelinePass {
  bool forward = false;
  int chunk = 0;
  std::int64_t micro_batch = 0;
  Seconds begin, end;
};

/// Those of a stage, in order of time, waits within a pass included.
std::vector<PipelinePass> passes_of(const Simulation& simulated, int stage);

/// The whole step, and where a pass is narrower than two columns its beginning too. Empty where
/// slices were left out.
std::string picture_text(const Simulation& simulated, const TextStyle& style);

}  // namespace placet
