// Why a plan is what it is: what the nearest other plans would cost, and what more memory, faster
// links, faster arithmetic or more samples would bring (docs/theory.md §9.5).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/hindrance.h"
#include "search/planner.h"

namespace placet {

/// A plan that differs in one choice.
struct PlanNeighbour {
  std::string axis;  // what is chosen otherwise: "recomputation", "mesh", "states", ...
  Plan plan;
  EvaluatedPlan judged;

  bool is_plan() const { return judged.found.has_value(); }
};

/// Of each choice the best other value by what is sought, all else kept; where none is a plan, the
/// one whose memory is least.
std::vector<PlanNeighbour> neighbours_of(const PlanSpace& space, const FoundPlan& plan,
                                         const PlanOptions& options);

/// What one thing more would bring.
struct PlanMargin {
  std::string what;  // "memory", "arithmetic", the name of a link, "samples"
  double factor = 1;
  FoundPlan
      plan;  // the best plan with so much more memory; else the same plan on the better cluster
};

/// Memory: searched anew, and exact; not where the plan of least memory is sought, which stays what
/// it is. Links, arithmetic, samples: the same plan, so that the best one gains as much or more.
std::vector<PlanMargin> margins_of(const PlanSpace& space, const FoundPlan& plan,
                                   const PlanOptions& options);

/// What stands against any plan: the plan that needs least memory, and the devices that would do.
struct PlanShortage {
  std::optional<FoundPlan> least;  // none: rules exclude everything
  Hindrance hindrance;             // then: which rules, of the plan that breaks fewest
  Bytes needed;                    // by that plan, on the fullest of the devices that there are
  Bytes capacity;
  Bytes host_used;  // by all devices of a host, with that plan
  Bytes host_capacity;
  /// What that plan lacks: memory of a device, the part of it that may be filled, memory that the
  /// allocator need not give back, memory of a host.
  enum class Lack : std::uint8_t { device, part_of_device, cached, host };
  Lack lack = Lack::device;
  std::string largest;  // its largest term of memory: "activations kept of block"
  Bytes largest_bytes;
  /// Least multiple of the cluster by a power of two that has a plan; 0: none, or what is lacking
  /// is no device's memory.
  std::int64_t devices = 0;
};
PlanShortage shortage_of(const PlanSpace& space, const PlanOptions& options);

}  // namespace placet
