// A small program of the same shape: what is run number by number in place of the large one
// (docs/theory.md §6.7).
#pragma once

#include <cstdint>

#include "profile/job.h"
#include "program/program.h"

namespace placet {

/// The job on as few devices as keep its shape: along each axis the least divisor of its degree, on
/// a ring from three on (two or three where it has none below nine; all where shares or heads say
/// more), the fewest blocks of each kind, as many micro-batches as the schedule needs up to four.
Job small_job(const Job& job);

/// The same program with the shortest dims that its divisions divide evenly, at least so many
/// entries; one more where they do not divide the dim of the large one evenly. In two entries real
/// numbers have no room for all that may go wrong: less their mean they are opposite.
Program with_short_dims(Program program, std::int64_t least = 2);

/// The two, one after the other.
Program lower_small(const Job& job, std::int64_t least = 2);

}  // namespace placet
