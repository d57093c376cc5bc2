// What run answers: a step program executed on real numbers by all ranks, beside one device and
// beside what is derived.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "call/programs.h"
#include "execute/run.h"
#include "report/run.h"

namespace placet {

struct RunRequest {
  ProgramRequest program;
  int steps = 3;
  std::string mode = "canonical";
  std::string ranks = "virtual";      // where they live: RankKind
  std::string order = "early";        // QueueOrder
  std::vector<std::string> meanings;  // "learning-rate=3e-4"
  std::function<void(const StepLoss&)> on_step = [](const StepLoss&) {};
};

struct RanProgram {
  AskedProgram asked;
  RunSheet sheet;
};
RanProgram ran_of(const Catalog& catalog, const RunRequest& request, const JobRequest& job);

}  // namespace placet
