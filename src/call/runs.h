// What run answers: a step program executed on real numbers by all ranks, beside one device and
// beside what is derived.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "call/programs.h"
#include "execute/run.h"
#include "report/run.h"

namespace placet {

namespace checkpoint {
class Checkpoint;
}  // namespace checkpoint

struct RunRequest {
  ProgramRequest program;
  int steps = 3;
  std::string mode;               // empty: that of the checkpoint, without one canonical
  std::string ranks = "virtual";  // where they live: RankKind
  std::string order;              // QueueOrder; empty: early, or listed where ranks are looked at
  std::vector<std::string> meanings;  // "learning-rate=3e-4"
  std::string corpus;                 // file of text to train on; empty: samples are drawn
  bool watch = false;                 // compare with the program without faults in every step
  bool times = false;                 // note when each operation ran, for a trace
  bool tells_times = false;           // say how long each step took
  std::string save;                   // folder that the state goes to after the last step
  std::string resume;                 // folder of a checkpoint that the run goes on from
  std::shared_ptr<const checkpoint::Checkpoint> from;  // what is there: see open_checkpoint
  std::function<void(const StepLoss&)> on_step = [](const StepLoss&) {};
};

struct RanProgram {
  AskedProgram asked;
  RunSheet sheet;
};
/// What may be run at most: less in exact numbers, which take far more memory and time.
ranks::RunLimits limits_of_runs(Arithmetic arithmetic);
/// Whether a job's own program is run, and not that of the same job made small.
bool runs_as_it_is(const Job& job, Arithmetic arithmetic);
/// What derive says that the buffers of the fullest device hold, without samples, which its
/// program has all of.
struct DerivedBytes {
  std::int64_t rest = 0;
  std::int64_t peak = 0;
};
DerivedBytes derived_bytes(const Job& job);

RanProgram ran_of(const Catalog& catalog, const RunRequest& request, const JobRequest& job);

}  // namespace placet
