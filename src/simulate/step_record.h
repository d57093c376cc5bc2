// What a simulation keeps of what it sees: slices, and what each stage spent. Inside of
// simulation.cc.
#pragma once

#include "simulate/simulation.h"

namespace placet {

class StepRecord {
 public:
  StepRecord(const StepParts& parts, const SimulateChoice& choice);

  /// Adds a slice, unless it took no time; slices beyond SimulateChoice::most_slices are counted.
  void keep(const Slice& slice);

  /// The end of the step, which all stages go through together, once each has said when it
  /// finished.
  void end_step();

  /// How much longer than it should a stage takes for what it computes.
  double slower(std::size_t stage) const;

  Simulation simulation;

 private:
  Seconds update_of(std::size_t stage) const { return parts_.stage(stage).update * slower(stage); }
  Seconds after_of(std::size_t stage) const {
    return parts_.stage(stage).after.total() + parts_.stage(stage).scalars.total();
  }
  void keep_of(std::size_t stage, Doing doing, Seconds begin, Seconds end);

  const StepParts& parts_;
  const SimulateChoice& choice_;
};

}  // namespace placet
