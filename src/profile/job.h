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

/// A method that is another training on purpose, on one axis: how it rewrites the step program
/// (program/rewrite.h; "{axis}" stands for the axis), why it is not the training of one device, and
/// what it promises instead.
struct Method {
  std::string name;
  std::string axis;
  std::vector<std::string> rewrites;
  std::string breaks;   // the condition: "gradient_integrity"
  std::string because;  // "each replica steps with the gradient of its own samples"
  std::string keeps;    // "after every second step all replicas hold the same parameters"

  friend bool operator==(const Method&, const Method&) = default;
};

/// How often a matrix stands on its device in the format of its products: in place of what it rests
/// in otherwise, or beside it.
struct WeightCopies {
  std::int64_t in_place = 0;
  std::int64_t beside = 0;

  friend bool operator==(const WeightCopies&, const WeightCopies&) = default;
};

struct Job {
  Model model;
  Placement placement;
  Schedule schedule;  // of the layer axes, if any
  /// How attention sees other devices' keys and values, one per axis of the placement (unused where
  /// the axis does not cut the sequence).
  std::vector<AttentionExchange> attention;
  std::vector<Method> methods;  // of the axes that name one
  Batch batch;
  Recompute recompute;
  Precision precision;
  WeightCopies weight_copies;  // of matrices that multiply in fewer bits (profile/products.h)
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

/// Whether every update takes a number that is made of all gradients: the limit of their norm, or
/// whether one of them overflowed.
inline bool needs_all_gradients(const Job& job) {
  return job.clips_by_global_norm || job.scales_loss_dynamically;
}

}  // namespace placet
