// What derive, simulate, compare and model answer: a request in, a value out. Nothing is printed.
#pragma once

#include <string>
#include <vector>

#include "call/job_flags.h"
#include "call/stragglers.h"
#include "catalog/catalog.h"
#include "derive/fit.h"
#include "derive/step_parts.h"
#include "derive/time.h"
#include "report/judged.h"
#include "report/timeline.h"
#include "simulate/simulation.h"
#include "validate/error_band.h"

namespace placet {

/// Memory, communication and rules of one placement. `shown`: of which classes the reserve is told.
Judged judged_of(const Catalog& catalog, const JobRequest& request, ShownClasses shown);

/// What `simulate` asks.
struct StepRequest {
  JobRequest job;
  std::vector<std::string> stragglers;  // STAGE=FACTOR
};

/// A step as it was played, with all that its reports speak of.
struct PlayedStep {
  Judged judged;
  bool has_time = false;  // false: the placement means nothing, and what follows is empty
  TimeDerivation time;
  StepParts parts;
  Simulation simulated;
  std::vector<Finding> findings;
  std::vector<Straggler> stragglers;
  Seconds undisturbed;
  std::optional<ErrorBand> similar;  // measured runs of the nearest kind

  /// What reports are made of. Points into this value, which must outlive it.
  Timeline timeline() const;
};
PlayedStep played_step_of(const Catalog& catalog, const StepRequest& request);

/// One job in several placements, on each of several clusters; without any, in the request's own.
/// Of those with a cluster the time of a step is derived as well.
std::vector<Judged> compared_of(const Catalog& catalog, const JobRequest& request,
                                std::vector<std::string> placements,
                                std::vector<std::string> clusters);

/// A model, and the length of a sequence that its FLOPs are told of.
struct ShownModel {
  Model model;
  std::int64_t sequence = 0;
};
ShownModel shown_model_of(const Catalog& catalog, const JobRequest& request);

}  // namespace placet
