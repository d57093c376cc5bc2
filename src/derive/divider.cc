#include "derive/divider.h"

#include <algorithm>

#include "derive/layout.h"
#include "units/checked.h"
#include "units/quantity.h"
#include "units/shares.h"

namespace placet {

std::int64_t Divider::share(std::int64_t total, AxisMask mask) const {
  std::int64_t n = 1;
  std::int64_t index = 0;
  for (std::size_t a = 0; a < placement_.axes.size(); ++a) {
    if ((mask >> a & 1U) == 0) continue;
    const AxisPlacement& axis = placement_.axes[a];
    if (!axis.shares.empty() && axis.how.cut != Cut::layer) {
      total = proportional(total, axis, a);
      continue;
    }
    n = checked_multiply(n, axis.degree, "degree");
    if (coordinates_) index = index * axis.degree + (*coordinates_)[a];
  }
  return coordinates_ ? share_of(total, n, index) : largest_share(total, n);
}

std::int64_t Divider::proportional(std::int64_t total, const AxisPlacement& axis,
                                   std::size_t a) const {
  std::int64_t sum = 0;
  for (std::int64_t share : axis.shares) sum += share;
  auto begin = [&](std::int64_t cumulated) {
    return in_bytes(part_rounded_up(bytes(total), Rational(cumulated, sum)));
  };
  std::int64_t cumulated = 0;
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < axis.shares.size(); ++i) {
    const std::int64_t size = begin(cumulated + axis.shares[i]) - begin(cumulated);
    if (coordinates_ && (*coordinates_)[a] == static_cast<std::int64_t>(i)) return size;
    largest = std::max(largest, size);
    cumulated += axis.shares[i];
  }
  return largest;
}

std::int64_t largest_part(const Placement& placement, std::int64_t total, AxisMask mask) {
  const Coordinates none;
  return Divider(placement, none).share(total, mask);
}

std::int64_t smallest_part(const Placement& placement, std::int64_t total, AxisMask mask) {
  Coordinates last = std::vector<std::int64_t>();
  for (const AxisPlacement& axis : placement.axes) {
    const auto least = std::ranges::min_element(axis.shares);
    const bool uneven = !axis.shares.empty() && axis.how.cut != Cut::layer;
    last->push_back(uneven ? least - axis.shares.begin() : axis.degree - 1);
  }
  return Divider(placement, last).share(total, mask);
}

}  // namespace placet
