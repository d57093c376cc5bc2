// Random jobs that both derivations know: of the plain theory, with what has a step program.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "derive/random_jobs.h"
#include "meet/meeting.h"

namespace placet::testing {

/// How two derivations of many jobs met.
struct Tallied {
  int jobs = 0;
  int lowered = 0;                     // the others have no step program
  int checked = 0;                     // judged as well
  int changed = 0;                     // programs that the facts of the engine change
  std::map<Figure, int> met;           // jobs that agree on all figures of that sort
  std::map<std::string, int> refused;  // why the others are not lowered
  std::map<std::string, int> apart;    // lowered jobs of which a figure is not compared, and why
  std::vector<std::string> parted;     // a few jobs that part, with their figures
};

/// Its figures in words, with a few of the jobs that part.
std::string text_of(const Tallied& tallied);

/// Models of the catalogue without experts, of these those without a tensor of two units, and
/// models with experts.
std::vector<std::string> dense_models();
std::vector<std::string> untied_models();
std::vector<std::string> expert_models();

/// Schedules of the catalogue that do backward in two parts.
std::vector<std::string> split_schedules();

class MeetJobs {
 public:
  /// `schedules`: those that every job has one of, over a layer axis of two to six devices; none:
  /// whatever the placement says.
  MeetJobs(std::uint32_t seed, std::vector<std::string> models,
           std::vector<std::string> schedules = {});

  /// From now on jobs are of an engine: the plain theory with these facts.
  void change(std::function<void(Profile&)> facts) { facts_ = std::move(facts); }

  /// Compares `jobs` jobs. `figures`: those whose differences are noted in `parted`. `trained`
  /// freezes tensors of a model, or gives it adapters; without it all are trained.
  Tallied compare(int jobs, const std::vector<Figure>& figures);
  Tallied compare(int jobs, const std::vector<Figure>& figures,
                  const std::function<Model(Model)>& trained);

 private:
  void tame(Job& job);
  void schedule(Job& job);
  void meet(const Job& job, const std::vector<Figure>& figures, Tallied& out);

  RandomJobs random_;
  std::vector<std::string> models_;
  std::vector<std::string> schedules_;
  std::function<void(Profile&)> facts_;
  std::int64_t micro_batches_ = 1;  // of a job with one of the schedules
};

}  // namespace placet::testing
