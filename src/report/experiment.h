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

struct Experiment {
  std::string name;
  std::string question;
  std::vector<ExperimentRun> runs;
  std::vector<ExperimentFact> facts;

  bool holds() const;
};

std::string experiment_text(const Experiment& experiment, const TextStyle& style);
/// Schema placet.experiment/1.
std::string experiment_json(const Experiment& experiment);

}  // namespace placet
