// The messages of a stage that do not belong to single values: parameters on their way to use,
// gradients, what follows the update, and the stream between stages (docs/theory.md §7.4).
#pragma once

#include <cstdint>

#include "derive/collective_time.h"
#include "derive/derivation.h"
#include "derive/layout.h"
#include "derive/unit_time.h"

namespace placet {

struct StepMessages {
  AxisTimes forward;   // per micro-batch: parameters gathered for use
  AxisTimes backward;  // per micro-batch: the same again, gradients that are reduced each time
  AxisTimes reduce;    // once per step
  AxisTimes update;    // parameters after the update
  AxisTimes scalars;   // norms, flags, losses, and whatever an engine adds
  Seconds boundary;    // one micro-batch's stream to the next stage
};

/// Where in a step a message of a stage belongs.
enum class StepPlace : std::uint8_t {
  boundary,  // the stream's way to the next stage: a message, and the gather that may follow it
  unit,      // of a unit's values, or the stream's way back, which takes as long
  forward,
  backward,
  reduce,
  update,
  scalars
};
StepPlace place_in_step(const CommunicationTerm& term);

/// What a message takes of a step by itself: all its calls, and copies of the members' parts where
/// the engine makes them of a state.
Seconds time_in_step(const CommunicationTerm& term, const GroupSet& devices, MessageTimer& timer);

/// Of one stage, on devices of these groups. REQUIRES: the job has a cluster.
StepMessages step_messages(const Layout& layout, const CommunicationClass& traffic,
                           const GroupSet& devices, MessageTimer& timer);

}  // namespace placet
