// A step as events: every device class works through the order of its schedule, unit by unit, and
// waits for inputs, parameters and messages, which share links (docs/theory.md §7.8). Pure: the
// same pieces give the same events.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "derive/step_parts.h"

namespace placet {

/// What a device does, or waits for.
enum class Doing : std::uint8_t {
  forward,
  recomputation,
  backward,
  weights,     // gradients of weights, where backward is split
  collective,  // waits for messages of a unit's values
  gather,      // waits for parameters, or for gradients that are reduced in each pass
  launch,      // waits for its host
  send,        // waits until its message to another stage has arrived
  reduce,      // waits for gradients that are reduced once
  wait,        // waits for the slowest stage
  update,
  after,  // waits for parameters gathered after the update, and for norms, flags and losses
  step    // data, logging: the host, once a step
};
inline constexpr int kDoingCount = 13;
std::string_view name_of(Doing doing);

/// Who works at once on a device.
enum class Lane : std::uint8_t {
  compute,     // what the device does, waiting included
  host,        // launching
  gathers,     // parameters, and gradients that are reduced in each pass
  reductions,  // gradients that are reduced once
  next,        // messages to the next stage
  previous     // ... to the one before
};
inline constexpr int kLaneCount = 6;
std::string_view name_of(Lane lane);

/// Something that takes time on one lane of one stage.
struct Slice {
  int stage = 0;
  Lane lane = Lane::compute;
  Doing doing = Doing::forward;
  int chunk = -1;  // -1: of no chunk
  int unit = -1;   // position in Model::units; -1: of no single unit
  std::int64_t micro_batch = -1;
  AxisMask axes = 0;      // of collectives
  std::string_view what;  // of messages
  double bytes = 0;       // of messages
  Seconds begin;
  Seconds end;
};

/// One stage over the whole step; the parts of `spent` and `idle` add up to the step.
struct SimulatedStage {
  std::array<Seconds, kDoingCount> spent{};
  Seconds idle;      // for messages of other stages
  Seconds finished;  // its last work and its reductions are done

  Seconds of(Doing doing) const { return spent[static_cast<std::size_t>(doing)]; }
};

/// A link of one stage's device: the busier of its two directions.
struct SimulatedLink {
  int stage = 0;
  int link = 0;  // position in StepParts::links
  Seconds busy;  // at its full bandwidth
};

struct Simulation {
  Seconds step;
  Seconds pipeline;  // until all gradients are reduced
  std::vector<SimulatedStage> stages;
  std::vector<SimulatedLink> links;  // in use
  std::vector<Slice> slices;         // in the order in which they were seen to end
  std::int64_t left_out = 0;         // slices beyond SimulateChoice::most_slices
  bool by_unit = true;               // slices are of units; else of whole passes
};

struct SimulateChoice {
  std::int64_t most_slices = 400'000;   // kept; 0: none
  std::int64_t most_parts = 2'000'000;  // of units in all passes; beyond it passes stay whole
  std::vector<double> slower;           // by stage: factor on what it computes; empty: 1
};

/// A step takes at least what `derive_time` says, unless a stage is faster than it should be
/// (docs/theory.md §7.8 has the proof).
Simulation simulate(const StepParts& parts, const SimulateChoice& choice);

}  // namespace placet
