// The messages of a stage that do not belong to single values: parameters on their way to use,
// gradients, what follows the update, and the stream between stages (docs/theory.md §7.4).
#pragma once

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

/// Of one stage. REQUIRES: the job has a cluster.
StepMessages step_messages(const Layout& layout, const CommunicationClass& traffic,
                           MessageTimer& timer);
StepMessages step_messages(const Job& job, const Layout& layout, const CommunicationClass& traffic);

}  // namespace placet
