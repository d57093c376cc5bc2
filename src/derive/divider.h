// How lengths are divided among the devices of some axes: an exact partition, of which a device has
// the largest share or that of its coordinates (docs/theory.md §2). Inside of layout.cc;
// others ask largest_part and smallest_part.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "placement/placement.h"

namespace placet {

/// One per axis; none: the fullest device.
using Coordinates = std::optional<std::vector<std::int64_t>>;

/// Divides lengths among the coordinates of sets of axes.
class Divider {
 public:
  Divider(const Placement& placement, const Coordinates& coordinates)
      : placement_(placement), coordinates_(coordinates) {}

  /// This device's share of `total` pieces divided over the axes of `mask`: the largest one, or the
  /// one of the coordinates. Even axes are divided together, so that splitting an axis changes
  /// nothing; an axis with shares divides by them first.
  std::int64_t share(std::int64_t total, AxisMask mask) const;

 private:
  /// Exact partition in proportion to the axis's shares: piece k of the total goes to the
  /// coordinate whose cumulated share it falls in. begin(i) = ceil(total x cumulated(i) / sum).
  std::int64_t proportional(std::int64_t total, const AxisPlacement& axis, std::size_t a) const;

  const Placement& placement_;
  const Coordinates& coordinates_;
};

}  // namespace placet
