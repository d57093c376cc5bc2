// Which part of a dim a device has, as a rule that holds for all devices of a class at once
// (docs/theory.md §6.5). Inside of check/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/program.h"

namespace placet {

/// One division of a length by an axis. Open: the device has the part of its own coordinate (or of
/// the one `shift` places further on, counted round the axis). Closed: it has all parts, put
/// together.
struct Split {
  int axis = 0;
  bool open = true;
  /// From 0 to the degree less one. Negative: of another device of several axes at once, of which
  /// no rule speaks.
  std::int64_t shift = 0;
  /// Several axes that divide a length together which they do not divide evenly are no nest of
  /// single divisions: the number of that division, else 0.
  int joint = 0;

  friend auto operator<=>(const Split&, const Split&) = default;
};

/// The `joint` of a division by micro-batches in a sum over them, closed as the sum's runs say of
/// which. It stays as long as these do: samples divided over devices and then micro-batches are
/// other parts than the other way round.
inline constexpr int kSummedMicroBatches = -1;

/// Divisions of a dim, outermost first; closed ones at the end do not stand.
using Splits = std::vector<Split>;

/// Turns divisions of types into cuts and works with them, for the axes of one program.
class Regions {
 public:
  explicit Regions(const Program& program) : program_(program) {}

  /// The cuts of a dim of that extent under a division, of the part of the device itself or of one
  /// so many places further on along the axis that divides last.
  Splits cuts_of(std::int64_t extent, const Division& division, std::int64_t shift = 0);
  /// Splits after one more division along `axes`, of a dim with that extent.
  Splits divided(Splits cuts, std::int64_t extent, const AxisList& axes, std::int64_t shift);
  /// The same of a row of elements, which its axes divide one after the other.
  Splits row_divided(Splits cuts, std::int64_t extent, const AxisList& axes, std::int64_t shift);
  /// The axes of a level in the order in which they divide: those with shares first, one by one
  /// (`part_of`). Axes of one device divide nothing.
  AxisList level_order(AxisList axes) const;
  /// Splits after the parts along `axes` were put together in this order; false: these are not the
  /// innermost open ones, so that the parts do not follow each other.
  bool gathered(Splits& cuts, const AxisList& axes) const;

  /// Whether the parts of all devices and micro-batches are as long.
  bool have_one_length(std::int64_t extent, const Splits& cuts) const;

  /// The length of a logical dim.
  std::int64_t extent_of(int dim) const {
    return program_.dims[static_cast<std::size_t>(dim)].extent;
  }
  std::int64_t degree(int axis) const {
    return program_.axes[static_cast<std::size_t>(axis)].degree;
  }
  const std::string& name_of(int axis) const {
    return program_.axes[static_cast<std::size_t>(axis)].name;
  }
  int micro_axis() const { return static_cast<int>(program_.axes.size()) - 1; }

 private:
  bool is_even(int axis) const {
    return program_.axes[static_cast<std::size_t>(axis)].shares.empty();
  }
  /// How a split says that its part is of another device along these axes.
  std::int64_t shift_along(const AxisList& axes, std::int64_t shift) const;
  int joint_number(const AxisList& axes, std::int64_t length);

  const Program& program_;
  std::vector<std::pair<AxisList, std::int64_t>> joints_;
};

std::uint64_t hash_of(const Splits& cuts);

/// Every part that a cut names by its device along an axis, of the device `by` places further on
/// instead. False: a part is one of which that cannot be said.
bool shift_all(Splits& cuts, int axis, std::int64_t by, const Regions& regions);

/// Drops closed cuts at the end.
void trim(Splits& cuts);
/// Drops what stands for sums over micro-batches, which are complete.
void forget_micro_batches(Splits& cuts);
/// Whether the device has all of it, of all micro-batches.
bool is_whole(const Splits& cuts);
/// Length of the part, if all divisions are even; of the largest one otherwise.
std::int64_t length_of(std::int64_t extent, const Splits& cuts, const Regions& regions);

}  // namespace placet
