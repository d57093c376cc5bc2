#include "check/places.h"

#include <algorithm>
#include <numeric>

#include "units/at.h"

namespace placet {

const std::vector<std::int64_t>& named(const DeviceClass& device_class, int axis) {
  static const std::vector<std::int64_t> kAll;
  return at(axis) < device_class.box.size() ? device_class.box[at(axis)] : kAll;
}

std::vector<std::int64_t> coordinates_along(const Program& program, int axis) {
  std::vector<std::int64_t> all(at(program.axes[at(axis)].degree));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<std::int64_t> coordinates_of(const Program& program, const DeviceClass& device_class,
                                         int axis) {
  const std::vector<std::int64_t>& own = named(device_class, axis);
  return own.empty() ? coordinates_along(program, axis) : own;
}

std::int64_t count_of(const Program& program, const DeviceClass& device_class, int axis) {
  const std::vector<std::int64_t>& own = named(device_class, axis);
  return own.empty() ? program.axes[at(axis)].degree : static_cast<std::int64_t>(own.size());
}

bool stands_at(const DeviceClass& device_class, int axis, std::int64_t coordinate) {
  const std::vector<std::int64_t>& own = named(device_class, axis);
  return own.empty() || std::ranges::find(own, coordinate) != own.end();
}

std::vector<ProgramCoordinates> spread(const std::vector<ProgramCoordinates>& devices, int axis,
                                       const std::vector<std::int64_t>& coordinates) {
  std::vector<ProgramCoordinates> out;
  out.reserve(devices.size() * coordinates.size());
  for (const ProgramCoordinates& device : devices) {
    for (const std::int64_t c : coordinates) out.emplace_back(device)[at(axis)] = c;
  }
  return out;
}

}  // namespace placet
