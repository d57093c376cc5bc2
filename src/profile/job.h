// The job: everything a judgement depends on, in one value (docs/theory.md §1).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "model/model.h"
#include "placement/exchange.h"
#include "placement/placement.h"
#include "profile/profile.h"
#include "profile/training.h"
#include "schedule/schedule.h"

namespace placet {

struct Job {
  Model model;
  Placement placement;
  Schedule schedule;  // of the layer axes, if any
  /// How attention sees other devices' keys and values, one per axis of the placement (unused where
  /// the axis does not cut the sequence).
  std::vector<AttentionExchange> attention;
  Batch batch;
  Recompute recompute;
  Precision precision;
  Optimizer optimizer;
  Routing routing;
  BalanceScope balance = BalanceScope::none;
  bool host_runs_ahead = false;  // the host launches kernels faster than the device runs them
  bool clips_by_global_norm = false;
  bool scales_loss_dynamically = false;
  std::optional<Cluster> cluster;  // none: capacity is not judged, one flat level
  Profile profile;
  std::string placement_text;  // canonical print, for reports
  std::string engine_text;     // name and version of the profile, "placet@1"
};

}  // namespace placet
