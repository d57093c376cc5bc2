// An experiment: several runs side by side and what follows from them.
#pragma once

#include <string>
#include <vector>

#include "report/run.h"

namespace placet {

/// What an experiment shows: a figure, what the theory says, and whether they are the same.
struct ExperimentFact {
  std::string what;
  std::string expected;
  std::string found;
  bool holds = false;
};

struct ExperimentRun {
  std::string placement;
  RunSheet sheet;
};

/// The buffers of one rank of a job in its full size, made and freed as its step does.
struct ReplayedBuffers {
  std::string model;
  std::string placement;
  std::int64_t derived_rest = 0;
  std::int64_t derived_peak = 0;
  std::int64_t rest = 0;  // bytes in buffers, counted
  std::int64_t peak = 0;
  std::int64_t resident_rest = 0;  // that the system gave for them
  std::int64_t resident_peak = 0;
};

struct Experiment {
  std::string name;
  std::string question;
  std::vector<ExperimentRun> runs;
  std::vector<ExperimentFact> facts;
  std::vector<ReplayedBuffers> replayed;
  std::string note;  // what was left out, and why

  bool holds() const;
};

std::string experiment_text(const Experiment& experiment, const TextStyle& style);
/// A self-contained page.
std::string experiment_page(const Experiment& experiment);
/// Schema placet.experiment/1.
std::string experiment_json(const Experiment& experiment);

}  // namespace placet
