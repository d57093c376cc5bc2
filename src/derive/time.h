// The time of a step as a sum of named terms (docs/theory.md §7). A closed form over what derive
// already knows: kernels of each unit, messages of each transition, the order of work of the
// schedule, and what the engine runs beside what. Pure, like the rest of derive.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "derive/derivation.h"
#include "derive/pipeline_time.h"
#include "derive/prepared.h"
#include "derive/stages.h"
#include "derive/unit_time.h"
#include "schedule/moments.h"

namespace placet {

/// What a part of the step is spent on.
enum class TimeKind : std::uint8_t {
  compute,  // kernels of a unit
  launch,   // the device waits for its host
  exposed,  // the device waits for a collective
  send,     // ... for messages between stages that keep a sender busy
  bubble,   // ... for other stages
  update,   // the optimizer's kernels
  host      // data, logging and whatever else the host does once a step
};
std::string_view name_of(TimeKind kind);

/// One named part of the step on the device that finishes last.
struct TimeTerm {
  TimeKind kind = TimeKind::compute;
  std::string_view what;   // "products", "attention", "streams", ...
  std::string_view unit;   // kind of unit; empty: none
  std::string_view phase;  // "forward", "recomputation", "backward", "reduce", "update"; or empty
  AxisMask axes = 0;       // of collectives
  Seconds time;

  friend bool operator==(const TimeTerm&, const TimeTerm&) = default;
};

/// One stage of the pipeline: all its micro-batches.
struct StageTime {
  int stage = 0;
  std::vector<ChunkTime> chunks;  // one micro-batch
  Seconds busy;                   // computing, or waiting for its own collectives
  Seconds reduce;                 // gradients, after its last backward
  Seconds update;
  Seconds finished;  // last backward and reduction done
};

struct TimeDerivation {
  /// False without a cluster, or where the placement means nothing: there are no figures.
  bool known = false;
  Seconds step;
  int critical = 0;             // the stage that finishes last
  std::vector<TimeTerm> terms;  // of that stage; they add up to `step`
  std::vector<StageTime> stages;
  double tokens = 0;          // of a step
  double model_flops = 0;     // of a step, all devices, by the usual convention (model/listing.h)
  double hardware_flops = 0;  // the same, and what backward computes once more
  FlopsPerSecond peak{};      // of all devices, dense, in the compute format
};

/// Sum of the terms of a kind.
Seconds total_of(const TimeDerivation& time, TimeKind kind);

/// Model FLOPs over peak and step; 0 where no peak is known.
double utilisation(const TimeDerivation& time);
/// Model FLOPs and those of recomputation, counted alike, over peak and step: never below
/// `utilisation`, and equal where nothing is recomputed (Korthikanti et al. 2022, arXiv:2205.05198,
/// section 6.3). 0 where no peak is known.
double hardware_utilisation(const TimeDerivation& time);

TimeDerivation derive_time(const Job& job);
/// The same with the placement-independent part done once.
TimeDerivation derive_time(const Job& job, const Prepared& prepared);

/// What derive and derive_time give, of a job laid out once; its grade is that of the bytes alive,
/// which `judge_reserved` (derive/fit.h) makes that of derive.
struct WholeDerivation {
  Derivation derivation;
  TimeDerivation time;
};
WholeDerivation derive_all(const Job& job, const Prepared& prepared);
/// The same where the moments of its pipeline's work are known (`moments_of` in derive/memory.h).
WholeDerivation derive_all(const Job& job, const Prepared& prepared,
                           const PipelineMoments& moments);

}  // namespace placet
