// Random jobs for properties: any model of the catalogue, a mesh of up to six axes with every cut,
// every mode that means something under it, uneven shares, overrides of classes, schedules and
// exchanges, recomputation, formats, optimizers and engines. The same seed gives the same jobs.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/strategy_catalog.h"
#include "profile/job.h"

namespace placet::testing {

/// What a random job may be.
struct JobLimits {
  int most_axes = 6;
  std::int64_t most_devices = std::int64_t{1} << 40;
  bool engines = true;     // profiles of engines beside the plain theory
  bool meaningful = true;  // modes from the table of meaningful ones; else any
};

class RandomJobs {
 public:
  RandomJobs(std::uint32_t seed, JobLimits limits);

  /// Names of the catalogue's models, and the model of one.
  const std::vector<std::string>& models() const { return models_; }
  Model model(const std::string& name) const;

  /// Gives `job`, which has a model, a new placement, batch, profile and everything else.
  void place(Job& job);

  std::int64_t pick(std::int64_t least, std::int64_t most);
  bool one_in(std::int64_t n) { return pick(1, n) == 1; }
  template <class T>
  const T& any_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(list.size()) - 1))];
  }

  /// Every mode that may stand there.
  static std::vector<Mode> meaningful_modes(Cut cut, State state);

  /// The job as the one line that makes it again, for messages.
  std::string describe(const Job& job) const;

  const StrategyCatalog& strategies() const { return strategies_; }

 private:
  Cut any_cut(const Model& model);
  std::int64_t any_degree(const Model& model, Cut cut);
  Modes any_modes(Cut cut);
  How any_how(Cut cut);
  void add_options(How& how);
  AxisPlacement any_axis(const Model& model, std::int64_t number);
  void add_shares(const Model& model, AxisPlacement& axis);
  void add_overrides(const Model& model, AxisPlacement& axis);
  Override any_override(const Model& model, const AxisPlacement& axis);
  Placement any_placement(const Model& model);
  Recompute any_recompute();
  Batch any_batch(const Job& job);
  void choose_training(Job& job);

  std::mt19937 generator_;
  JobLimits limits_;
  Catalog catalog_;
  StrategyCatalog strategies_;
  std::vector<std::string> models_;
  std::vector<Profile> profiles_;  // the plain theory first
  std::vector<Optimizer> optimizers_;
  std::vector<Precision> precisions_;
};

}  // namespace placet::testing
