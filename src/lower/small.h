// A small program of the same shape: what is run number by number in place of the large one
// (docs/theory.md §6.7).
#pragma once

#include "profile/job.h"
#include "program/program.h"

namespace placet {

/// The job on as few devices as keep its shape: two along each axis (all where shares or heads say
/// more), the fewest blocks of each kind, as many micro-batches as the schedule needs up to four.
Job small_job(const Job& job);

/// The same program with the shortest dims that its divisions divide evenly, at least two entries;
/// one more where they do not divide the dim of the large one evenly.
Program with_short_dims(Program program);

/// The two, one after the other.
Program lower_small(const Job& job);

}  // namespace placet
