// What one block, embedding or head costs on a device, whatever the pipeline and the states around
// it: the part of a plan that many plans share (docs/theory.md §9.2).
#pragma once

#include <cstdint>
#include <vector>

#include "derive/derivation.h"
#include "derive/prepared.h"
#include "search/plan_space.h"

namespace placet {

/// A job to work on, and what can be read off its model for each recomputation. One per thread.
struct Workbench {
  Job job;
  std::vector<Prepared> prepared;  // by word of Choices::recompute
  Prepared plain;                  // where nothing is recomputed, which may be no word

  explicit Workbench(const PlanSpace& space);
};

/// One unit over one micro-batch. Seconds of the device and of the host that launches for it.
struct UnitCost {
  double forward = 0, forward_host = 0;
  double backward = 0, backward_host = 0;  // recomputation included
  double weights = 0;                      // of backward
  /// Of the device, by the states that make them longest; the figures above are by those that make
  /// them shortest.
  double longest_backward = 0, longest_weights = 0;
  std::int64_t sent = 0;  // bytes, by its values' messages
  std::int64_t kept = 0;  // bytes, from forward to backward
  std::int64_t most = 0;  // bytes alive at its fullest moment, at least
  /// Where backward is split: bytes between its two parts, and alive at the fullest moment of
  /// forward and of the values' part.
  std::int64_t waiting = 0;
  std::int64_t most_forward = 0, most_inputs = 0;
};

/// By PlanSpace::costed_kind.
using WorkCosts = std::vector<UnitCost>;

/// Where work is the same: degrees of the axes that cut it, their words, the micro-batch, and
/// whether gradients are accumulated.
struct WorkShape {
  Degrees degrees{1, 1, 1, 1, 1, 1};  // of sequence, expert, tensor; batch takes the other devices
  std::int16_t attention = 0;
  std::int16_t expert = 0;
  std::int16_t tensor = 0;
  std::int64_t micro_batch = 1;
  bool accumulates = true;

  std::int64_t degree(AxisRole role) const { return degrees[at(role)]; }
};

/// Bytes that the busiest device sends by the calls of a term. REQUIRES: no axis has shares.
std::int64_t sent_by(const CommunicationTerm& term);

/// The plainest plan of a shape: one batch axis takes all devices that do not cut the work.
void apply_plain(const PlanSpace& space, const WorkShape& shape, Job& job);

/// Of units that are not recomputed.
WorkCosts plain_costs(const PlanSpace& space, const WorkShape& shape, Workbench& bench);

/// Of units recomputed by each of the words, one after the other. `plain`: their costs otherwise;
/// units that never are recomputed have these.
std::vector<WorkCosts> recomputed_costs(const PlanSpace& space, const WorkShape& shape,
                                        const WorkCosts& plain,
                                        const std::vector<std::int16_t>& words, Workbench& bench);

}  // namespace placet
