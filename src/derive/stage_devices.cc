#include "derive/stage_devices.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace placet {
namespace {

/// Devices of one stage; where they have coordinates, those with the same shares.
struct DeviceClass {
  const Placement& placement;
  std::int64_t stage = 0;
  const std::vector<std::int64_t>& coordinates;
};

/// Of the first `n` coordinates along an axis those that a class has: `own` or, along an axis with
/// shares, all with the same one; none: all.
std::int64_t coordinates_below(const AxisPlacement& axis, std::optional<std::int64_t> own,
                               std::int64_t n) {
  if (!own) return n;
  if (axis.how.cut == Cut::layer) return *own < n ? 1 : 0;
  const auto begin = axis.shares.begin();
  return std::count(begin, begin + n, axis.shares[static_cast<std::size_t>(*own)]);
}

/// How many of the first `end` ranks are of the class: from the innermost axis outwards, those of
/// whole blocks of the axes seen so far, and those of the block that `end` stands in.
std::int64_t ranks_below(const DeviceClass& own, std::int64_t end) {
  std::int64_t stage = own.stage;
  std::int64_t all = 1;    // of a block
  std::int64_t below = 0;  // of that one
  for (std::size_t a = own.placement.axes.size(); a-- > 0;) {
    const AxisPlacement& axis = own.placement.axes[a];
    std::optional<std::int64_t> coordinate;
    if (axis.how.cut == Cut::layer) {
      coordinate = stage % axis.degree;
      stage /= axis.degree;
    } else if (has_fitting_shares(axis) && !own.coordinates.empty()) {
      coordinate = own.coordinates[a];
    }
    const std::int64_t here = end % axis.degree;
    end /= axis.degree;
    const std::int64_t before = coordinates_below(axis, coordinate, here);
    const bool among = coordinates_below(axis, coordinate, here + 1) > before;
    below = before * all + (among ? below : 0);
    all *= coordinates_below(axis, coordinate, axis.degree);
  }
  return below + end * all;
}

}  // namespace

bool has_fitting_shares(const AxisPlacement& axis) {
  return !axis.shares.empty() && axis.how.cut != Cut::layer &&
         std::cmp_equal(axis.shares.size(), axis.degree);
}

GroupSet groups_of_class(const Cluster& cluster, const Placement& placement, std::int64_t stage,
                         const std::vector<std::int64_t>& coordinates) {
  if (cluster.groups.size() == 1) return {0};
  const DeviceClass own{.placement = placement, .stage = stage, .coordinates = coordinates};
  const std::int64_t ranks = devices_of(placement);
  GroupSet out;
  std::int64_t end = 0;
  std::int64_t counted = 0;
  for (std::size_t g = 0; g < cluster.groups.size(); ++g) {
    end += std::min(ranks - end, cluster.groups[g].count);
    const std::int64_t below = ranks_below(own, end);
    if (below > counted) out.push_back(g);
    counted = below;
  }
  return out.empty() ? all_groups(cluster) : out;
}

GroupSet groups_of_stage(const Cluster& cluster, const Placement& placement, std::int64_t stage) {
  return groups_of_class(cluster, placement, stage, {});
}

}  // namespace placet
