// The figures of one job that measurements are held against.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catalog/validation_catalog.h"
#include "derive/reserve.h"
#include "units/quantity.h"
#include "validate/run_jobs.h"

namespace placet {

/// Memory of the first device (rank 0) and of the fullest one.
struct RunFigures {
  Reservation first;
  Reservation fullest;                    // each figure on the device where it is largest
  std::vector<std::string> engine_terms;  // the profile's own terms whose conditions hold
  Bytes needed;  // what the fullest device must hold: reserved memory and what lies outside
  FitGrade fit = FitGrade::fits;  // of all that were replayed, the worst; fits without a capacity
};

/// What is asked of a job: all figures, or only whether it runs out of memory.
enum class Needs : std::uint8_t { figures, verdict };

/// Derives one job. Of a pipeline, the first stage, the last one and the fullest by closed form are
/// replayed. For a verdict alone nothing is replayed where the bytes alive already pass the
/// device's memory: what an allocator reserves is never less.
RunFigures figures_of(const RunPlan& plan, const Job& job, Needs needs);

/// The figure that a measure speaks of.
Bytes figure_for(const MemoryMeasure& measure, const RunFigures& figures);

}  // namespace placet
