#include "derive/divider.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>

#include "derive/layout.h"
#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

__extension__ typedef __int128 Wide;  // products of two 64-bit numbers

/// Beyond so many different weights axes are divided one after another.
constexpr std::size_t kMostWeights = 4096;

bool has_shares(const AxisPlacement& axis) {
  return !axis.shares.empty() && axis.how.cut != Cut::layer;
}

/// Coordinates with the same share along each axis.
struct Equals {
  std::int64_t weight = 1;  // product of the shares
  std::int64_t members = 1;
  bool has_own = true;  // the device is one of them
};

/// Axes with shares that divide a length together.
class SharedDivision {
 public:
  /// `coordinate`: of the device along the axis. Gives false, and takes nothing, where there would
  /// be too many different weights.
  bool add(const AxisPlacement& axis, std::size_t coordinate) {
    std::map<std::int64_t, std::int64_t, std::greater<>> counts;  // by share
    for (std::int64_t share : axis.shares) ++counts[share];
    if (groups_.size() > 1 && groups_.size() * counts.size() > kMostWeights) return false;
    const auto place = axis.shares.begin() +
                       static_cast<std::ptrdiff_t>(std::min(coordinate, axis.shares.size() - 1));
    const std::int64_t own = *place;
    const std::int64_t before = std::count(axis.shares.begin(), place, own);
    index_ = index_ * counts[own] + before;
    std::vector<Equals> groups;
    groups.reserve(groups_.size() * counts.size());
    for (const Equals& known : groups_) {
      for (const auto& [share, members] : counts) {
        groups.push_back({.weight = checked_multiply(known.weight, share, "shares"),
                          .members = checked_multiply(known.members, members, "shares"),
                          .has_own = known.has_own && share == own});
      }
    }
    groups_ = std::move(groups);
    return true;
  }

  /// The device's part.
  std::int64_t part_of(std::int64_t total) {
    std::ranges::stable_sort(groups_, std::greater<>(), &Equals::weight);
    std::int64_t sum = 0;
    for (const Equals& group : groups_) {
      sum = checked_add(sum, checked_multiply(group.weight, group.members, "shares"), "shares");
    }
    if (sum == 0) return total;  // shares of nothing; a finding says so
    const auto whole = [&](const Equals& group) {
      return static_cast<std::int64_t>(Wide{total} * group.weight / sum);
    };
    std::int64_t left = total;
    for (const Equals& group : groups_) left -= whole(group) * group.members;
    for (const Equals& group : groups_) {
      const bool rounded = Wide{total} * group.weight % sum != 0;
      const std::int64_t more = rounded ? std::min(left, group.members) : 0;
      if (group.has_own) return whole(group) + (index_ < more ? 1 : 0);
      left -= more;
    }
    return 0;
  }

 private:
  std::vector<Equals> groups_ = std::vector<Equals>(1);
  std::int64_t index_ = 0;  // of the device among its equals
};

}  // namespace

AxisMask Divider::uneven(AxisMask mask) const {
  AxisMask out = 0;
  for (AxisMask left = mask; left != 0; left &= left - 1) {
    const int a = std::countr_zero(left);
    if (has_shares(placement_.axes[static_cast<std::size_t>(a)])) out |= axis_bit(a);
  }
  return out;
}

std::int64_t Divider::share(std::int64_t total, AxisMask mask) const {
  if (mask == 0) return total;
  std::int64_t n = 1;
  std::int64_t index = 0;
  const AxisMask by_weight = uneven(mask);
  for (AxisMask left = mask & ~by_weight; left != 0; left &= left - 1) {
    const auto a = static_cast<std::size_t>(std::countr_zero(left));
    n = checked_multiply(n, placement_.axes[a].degree, "degree");
    if (coordinates_) index = index * placement_.axes[a].degree + (*coordinates_)[a];
  }
  if (by_weight != 0) total = share_by_weight(total, by_weight);
  return coordinates_ ? share_of(total, n, index) : largest_share(total, n);
}

std::int64_t Divider::share(std::int64_t total, AxisMask mask,
                            std::span<const AxisMask> order) const {
  AxisMask by_weight = uneven(mask);
  for (const AxisMask set : order) {
    if (by_weight == 0) break;
    const AxisMask now = mask & set;
    for (AxisMask left = now & by_weight; left != 0; left &= left - 1) {
      total = share_by_weight(total, left & ~(left - 1));
    }
    total = share(total, now & ~by_weight);
    mask &= ~now;
    by_weight &= ~now;
  }
  return share(total, mask);
}

std::int64_t Divider::share_by_weight(std::int64_t total, AxisMask mask) const {
  SharedDivision shared;
  for (std::size_t a = 0; a < placement_.axes.size(); ++a) {
    if ((mask >> a & 1U) == 0) continue;
    const AxisPlacement& axis = placement_.axes[a];
    const auto largest = std::ranges::max_element(axis.shares) - axis.shares.begin();
    const auto own = static_cast<std::size_t>(coordinates_ ? (*coordinates_)[a] : largest);
    if (shared.add(axis, own)) continue;
    total = shared.part_of(total);
    shared = SharedDivision();
    shared.add(axis, own);
  }
  return shared.part_of(total);
}

std::int64_t largest_part(const Placement& placement, std::int64_t total, AxisMask mask) {
  const Coordinates none;
  return Divider(placement, none).share(total, mask);
}

std::int64_t own_part(const Layout& layout, std::int64_t total, AxisMask mask) {
  return Divider(layout.job->placement, layout.coordinates).share(total, mask);
}

std::int64_t own_part(const Layout& layout, const LocalParameter& parameter, std::int64_t total,
                      AxisMask mask) {
  return Divider(layout.job->placement, layout.coordinates)
      .share(total, mask, row_order(parameter));
}

std::int64_t smallest_part(const Placement& placement, std::int64_t total, AxisMask mask) {
  const auto uneven = [&](const AxisPlacement& axis) {
    const auto a = static_cast<int>(&axis - placement.axes.data());
    return (mask & axis_bit(a)) != 0 && has_shares(axis);
  };
  if (std::ranges::none_of(placement.axes, uneven)) return total / degree_of(placement, mask);
  Coordinates last = std::vector<std::int64_t>();
  for (const AxisPlacement& axis : placement.axes) {
    const auto least = std::min_element(axis.shares.rbegin(), axis.shares.rend());
    last->push_back(has_shares(axis) ? axis.shares.rend() - least - 1 : axis.degree - 1);
  }
  return Divider(placement, last).share(total, mask);
}

}  // namespace placet
