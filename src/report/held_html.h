// Inside of report/timeline_html.
#pragma once

#include <string>

#include "report/chart.h"
#include "report/judged.h"
#include "report/timeline.h"

namespace placet {

/// A chart of what the fullest device holds over the step; empty where the step's slices were left
/// out or nothing is kept for backward.
std::string held_html(const Judged& judged, const Simulation& simulated);

/// The axis of a step's time, from its beginning.
ChartAxis step_axis(Seconds step);

}  // namespace placet
