#include "derive/quantised_traffic.h"

#include <algorithm>
#include <numeric>

#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

constexpr std::int64_t kEights = 8;

/// The least divisor of `number` that is not below `least`; `number` itself is one.
std::int64_t least_divisor(std::int64_t number, std::int64_t least) {
  std::int64_t best = number;
  for (std::int64_t d = 1; d <= number / d; ++d) {
    if (number % d != 0) continue;
    if (d >= least) best = std::min(best, d);
    if (number / d >= least) best = std::min(best, number / d);
  }
  return best;
}

/// Neighbours: devices that differ in the innermost axes of a set alone, axes of one device left
/// aside.
struct Neighbours {
  std::int64_t stride = 1;  // devices between two of them
  std::int64_t count = 1;
};

Neighbours neighbours_along(const Placement& placement, AxisMask axes) {
  Neighbours out;
  bool inside = false;
  for (std::size_t a = placement.axes.size(); a-- > 0;) {
    const std::int64_t degree = placement.axes[a].degree;
    const bool member = (axes & axis_bit(static_cast<int>(a))) != 0;
    if (degree == 1) continue;
    if (inside && !member) break;
    inside = member;
    std::int64_t& devices = member ? out.count : out.stride;
    devices = saturating_multiply(devices, degree);
  }
  return out;
}

/// Of the devices along `axes`, those on one host, of several kinds of hosts the smallest: as many
/// as divide both the neighbours and the room that a host has for them, so that a division of an
/// axis in two changes nothing.
std::int64_t members_on_host(const Job& job, AxisMask axes) {
  if (!job.cluster || job.cluster->groups.empty()) return degree_of(job.placement, axes);
  const Neighbours near = neighbours_along(job.placement, axes);
  const auto least = std::ranges::min_element(job.cluster->groups, {}, &DeviceGroup::per_host);
  const std::int64_t room = least->per_host / near.stride;
  return std::gcd(near.count, std::max<std::int64_t>(1, room));
}

/// The innermost of `axes`, along which so many neighbours lie, and those along which others do.
struct SplitAxes {
  AxisMask inner = 0;
  AxisMask beyond = 0;
};

SplitAxes split_at(const Placement& placement, AxisMask axes, std::int64_t neighbours) {
  SplitAxes out;
  std::int64_t count = 1;
  for (std::size_t a = placement.axes.size(); a-- > 0;) {
    const AxisMask bit = axes & axis_bit(static_cast<int>(a));
    if (bit == 0) continue;
    if (count < neighbours) out.inner |= bit;
    count *= placement.axes[a].degree;
    if (count > neighbours) out.beyond |= bit;
  }
  return out;
}

}  // namespace

std::int64_t equal_blocks(std::int64_t elements, std::int64_t block) {
  const std::int64_t needed = largest_share(elements, block);
  if (elements % kEights != 0 || needed > elements / kEights) return needed;
  return least_divisor(elements / kEights, needed);
}

std::vector<GradientExchange> gradient_exchanges(const Job& job, const LocalParameter& parameter,
                                                 AxisMask axes) {
  const std::int64_t devices = degree_of(job.placement, axes);
  const bool stacked = parameter.rows * parameter.matrix_columns != parameter.elements;
  const std::int64_t second = stacked ? parameter.matrix_rows : parameter.matrix_columns;
  const std::int64_t blocks = std::max({parameter.rows, second, devices});
  const std::int64_t near = members_on_host(job, axes);
  const SplitAxes split = split_at(job.placement, axes, near);
  return {{.axes = split.inner, .group = near, .elements = parameter.elements, .blocks = blocks},
          {.axes = split.beyond,
           .group = devices / near,
           .apart = near / degree_of(job.placement, split.inner & ~split.beyond),
           .elements = parameter.elements / near,
           .blocks = blocks / near}};
}

bool can_be_exchanged(const Placement& placement, const LocalParameter& parameter, AxisMask axes) {
  const bool matrix = parameter.rows < parameter.elements;
  return matrix && axes != 0 && parameter.elements % (2 * degree_of(placement, axes)) == 0;
}

}  // namespace placet
