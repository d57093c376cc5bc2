// Bounds of a pipeline by device: what all units of a device take and keep together, whatever the
// order of its chunks and whichever of its units are recomputed (docs/theory.md §9.3). Looser than
// plan_bounds.h, and much quicker: most pipelines of a search end here.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "search/plan_bounds.h"

namespace placet {

/// How many of the units that may be recomputed are.
enum class RecomputedPart : std::uint8_t { all, some };

class DeviceBounds {
 public:
  DeviceBounds(const BoundFacts& facts, const PipelineShape& pipeline,
               const PipelineInFlight& in_flight, std::int64_t micro_batches);

  struct Least {
    double step = 0;         // seconds; infinite: no choice fits
    std::int64_t bytes = 0;  // alive on the fullest device
  };
  /// Of plans whose devices hold `rest` bytes at rest and no more than `limit` in all. some: each
  /// device recomputes as many units as it must to fit, counted as if each were the one that frees
  /// most and takes least. REQUIRES: for some, `work` is eased.
  Least least(const WorkPair& work, RecomputedPart part, const std::vector<std::int64_t>& rest,
              double limit) const;

 private:
  struct Device {
    std::vector<std::int32_t> first;  // units of the first chunk, by kind
    std::vector<std::int64_t> kept;   // units times the micro-batches in flight, by kind
    std::int64_t most_held = 0;       // micro-batches of a chunk in flight
    std::int32_t may_recompute = 0;   // units
    std::optional<std::size_t> last;  // kind of the last unit of the last chunk in flight, where
                                      // bytes of the last unit that runs are told
  };
  /// What one unit more that is recomputed frees at most, and takes at least.
  struct Exchange {
    std::int64_t saved = 0;
    double device = 0, host = 0;
  };

  /// Seconds of units, one after the other.
  struct Pass {
    double forward = 0, forward_host = 0;
    double backward = 0, backward_host = 0;
  };

  Device device_of(std::size_t d, const std::vector<std::int64_t>& held);
  Exchange exchange_of(const WorkPair& work) const;
  static Pass pass_over(const std::vector<std::int32_t>& units, const WorkCosts& costs);
  /// Bytes that the micro-batches in flight keep, and the fullest moment needs beyond them.
  static std::int64_t kept_of(const Device& own, const WorkPair& work, const WorkCosts& costs);
  PathPiece piece_of(std::size_t d, const WorkCosts& base, double again,
                     const Exchange& exchange) const;

  const BoundFacts& facts_;
  const PipelineShape& pipeline_;
  double rounds_ = 1;  // micro-batches that a chunk sees
  std::vector<Device> devices_;
  std::vector<bool> may_recompute_;  // by kind
};

}  // namespace placet
