// A job laid out once, for memory, communication and time alike. Inside of derive.cc and time.cc.
#pragma once

#include <vector>

#include "derive/communication.h"
#include "derive/derivation.h"
#include "derive/layout.h"
#include "derive/stages.h"
#include "derive/time.h"

namespace placet {

struct LaidOut {
  Layout layout;
  std::vector<Stage> stages;
  std::vector<StageUnits> units;       // by stage
  std::vector<UnitMessages> messages;  // by local unit
  StageKinds kinds;
};

/// REQUIRES: the placement means something (rule `meaning`).
LaidOut lay_out_whole(const Job& job, const Prepared& prepared);

/// REQUIRES: the job has a cluster with devices.
TimeDerivation time_of(const LaidOut& laid_out);

}  // namespace placet
