// A simulated step as a trace for chrome://tracing and Perfetto (docs/formats.md): one process per
// stage, one thread per lane.
#pragma once

#include <string>

#include "report/judged.h"
#include "simulate/simulation.h"

namespace placet {

/// Chrome's trace event format, JSON object form: complete events ("X"), times in microseconds as
/// the format asks, and names of processes and threads. Slices beyond those that the simulation
/// kept are missing; `otherData` says how many.
std::string trace_json(const Judged& judged, const Simulation& simulated);

/// The slices alone (schema placet.slices/1, docs/formats.md), for pictures of very many of them:
/// one list of whole numbers per column, times in nanoseconds from the beginning of the step.
std::string slices_json(const Judged& judged, const Simulation& simulated);

}  // namespace placet
