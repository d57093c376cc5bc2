// The time of a step, as text and as JSON (schema placet.timeline/1, docs/formats.md).
#pragma once

#include <string>

#include "derive/time.h"
#include "report/judged.h"
#include "report/style.h"

namespace placet {

/// REQUIRES: the time is known.
std::string timeline_text(const Judged& judged, const TimeDerivation& time, const TextStyle& style);
std::string timeline_json(const Judged& judged, const TimeDerivation& time);

/// What takes most of the step, in a word: "arithmetic", "memory bandwidth", "waiting for other
/// stages", "collectives over dp", "the host", "the update".
std::string binding_text(const Job& job, const TimeDerivation& time);

/// Seconds for people: "1.23 s", "45.6 ms", "789 us".
std::string human_seconds(Seconds time);

}  // namespace placet
