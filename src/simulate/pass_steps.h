// What a pass of a chunk does one after the other: the same for every micro-batch, so made once.
// Inside of simulation.cc.
#pragma once

#include <vector>

#include "schedule/schedule.h"
#include "simulate/simulation.h"

namespace placet {

/// One thing that the program of a device does in a pass.
struct PassStep {
  enum class Kind : std::uint8_t {
    run,     // the device is busy for `time`
    issue,   // messages of states begin, as soon as those before them are done
    await,   // until the first `pieces` messages of the pass are done
    reduced  // gradients of one more unit are whole after the last micro-batch
  };
  Kind kind = Kind::run;
  Doing doing = Doing::forward;
  double time = 0;
  double host = 0;  // of the first step of a part: what launching it took
  int unit = -1;
  AxisMask axes = 0;
  AxisTimes beside;  // messages of values that run beside it
  std::size_t pieces = 0;
  const MessagePart* message = nullptr;  // of issue; `time` and `bytes` are its part of it
  double bytes = 0;
};

/// `whole`: a pass is one part instead of its units one by one.
struct PassStepsChoice {
  bool whole = false;
  double slower = 1;  // factor on what the device computes
};

/// The steps of a pass of chunk `chunk`.
std::vector<PassStep> pass_steps(const StepParts& parts, const StageParts& stage, std::size_t chunk,
                                 Work::Kind kind, const PassStepsChoice& choice);

}  // namespace placet
