// How lengths are divided among the devices of some axes: an exact partition, of which a device has
// the largest share or that of its coordinates (docs/theory.md §2). Inside of layout.cc;
// others ask largest_part and smallest_part.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "placement/placement.h"

namespace placet {

/// One per axis; none: the fullest device.
using Coordinates = std::optional<std::vector<std::int64_t>>;

/// Divides lengths among the coordinates of sets of axes.
///
/// Even axes are divided together, so that splitting an axis changes nothing. Axes with shares come
/// before them, together as well: a coordinate's weight is the product of its shares, and it gets
/// the part of the total in proportion, rounded down or up. What is left over by rounding down goes
/// one piece each to those with a remainder, the heaviest first, among equal shares in order of
/// their index. So the first of all coordinates with equal shares has the largest part of every
/// length, and the fullest device is the first of those with the largest shares.
class Divider {
 public:
  Divider(const Placement& placement, const Coordinates& coordinates)
      : placement_(placement), coordinates_(coordinates) {}

  /// This device's share of `total` pieces divided over the axes of `mask`: the one of the
  /// coordinates, or the largest. Case: 10 over shares 3,2,2: 5, 3, 2 (4.3, 2.9, 2.9 rounded down
  /// leave two).
  std::int64_t share(std::int64_t total, AxisMask mask) const;

  /// The same where messages divide a row one after another, by the axes of one set after those of
  /// another; within a set axes with shares come first, one by one. Even axes give the same largest
  /// part in any order. Case: 10 over an even axis of 2, then over shares 2,1: 4 and 1 of the first
  /// half; over all at once 7 and 3, of which halves are 4 and 2.
  std::int64_t share(std::int64_t total, AxisMask mask, std::span<const AxisMask> order) const;

 private:
  /// Of the axes in `mask` those with shares.
  AxisMask uneven(AxisMask mask) const;

  /// The same over axes with shares alone.
  std::int64_t share_by_weight(std::int64_t total, AxisMask mask) const;

  const Placement& placement_;
  const Coordinates& coordinates_;
};

}  // namespace placet
