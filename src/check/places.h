// Where the devices of a class stand along the axes of a program. Inside of check/.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"

namespace placet {

/// All coordinates along an axis: 0 to its degree less one.
std::vector<std::int64_t> coordinates_along(const Program& program, int axis);

/// The coordinates along an axis that a class names, in rising order; empty: it names none, and has
/// all.
const std::vector<std::int64_t>& named(const DeviceClass& device_class, int axis);

/// The coordinates along an axis at which devices of a class stand: of an axis that does not split
/// the class, and of that of the micro-batches, all.
std::vector<std::int64_t> coordinates_of(const Program& program, const DeviceClass& device_class,
                                         int axis);
/// How many these are.
std::int64_t count_of(const Program& program, const DeviceClass& device_class, int axis);

/// Whether devices of a class stand at that coordinate of an axis.
bool stands_at(const DeviceClass& device_class, int axis, std::int64_t coordinate);

/// Each device moved to each of these coordinates of an axis, one device after the other.
/// Case: (0 0), (1 0) at 2 and 3 of the second axis: (0 2), (0 3), (1 2), (1 3).
std::vector<ProgramCoordinates> spread(const std::vector<ProgramCoordinates>& devices, int axis,
                                       const std::vector<std::int64_t>& coordinates);

}  // namespace placet
