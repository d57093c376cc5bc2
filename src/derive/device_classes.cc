#include "derive/device_classes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "derive/stage_devices.h"
#include "units/checked.h"

namespace placet {
namespace {

constexpr std::size_t kMostClasses = 256;

std::string share_name(const AxisPlacement& axis, std::int64_t share) {
  std::int64_t sum = 0;
  for (std::int64_t one : axis.shares) sum = checked_add(sum, one, "shares");
  return std::string(axis.axis.text()) + " " + std::to_string(share) + "/" + std::to_string(sum);
}

/// Adds the parts of one class along an axis with shares.
void divide(const ShareClass& whole, const AxisPlacement& axis, std::size_t a,
            std::vector<ShareClass>& out) {
  std::map<std::int64_t, std::size_t> place;  // by share
  for (std::size_t i = 0; i < axis.shares.size(); ++i) {
    const auto [known, is_new] = place.emplace(axis.shares[i], out.size());
    if (!is_new) {
      out[known->second].devices += whole.devices / axis.degree;
      continue;
    }
    ShareClass own = whole;
    own.coordinates[a] = static_cast<std::int64_t>(i);
    own.devices = whole.devices / axis.degree;
    own.name += (own.name.empty() ? "" : " ") + share_name(axis, axis.shares[i]);
    out.push_back(std::move(own));
  }
}

}  // namespace

std::vector<AxisFactor> factors_of(const Placement& placement, const MemoryClass& memory,
                                   const MemoryTerm& term) {
  std::vector<AxisFactor> factors;
  std::int64_t replicas = term.replicas;  // that axes further in do not account for
  for (std::size_t a = placement.axes.size(); a-- > 0;) {
    if ((term.divided_by >> a & 1U) == 0) continue;
    const AxisPlacement& axis = placement.axes[a];
    Rational factor(1, axis.degree);
    if (has_fitting_shares(axis) && !memory.coordinates.empty()) {
      std::int64_t sum = 0;
      for (const std::int64_t share : axis.shares) sum = checked_add(sum, share, "shares");
      factor = Rational(axis.shares[static_cast<std::size_t>(memory.coordinates[a])], sum);
    }
    if ((term.replica_axes >> a & 1U) != 0) {
      const std::int64_t alike = std::gcd(replicas, axis.degree);
      factor = factor * Rational(alike);
      replicas /= alike;
    }
    if (factor != Rational(1)) factors.push_back({static_cast<int>(a), factor});
  }
  std::ranges::reverse(factors);
  return factors;
}

std::vector<ShareClass> share_classes(const Placement& placement) {
  const ShareClass all{.coordinates = std::vector<std::int64_t>(placement.axes.size(), 0),
                       .devices = devices_of(placement)};
  std::vector<ShareClass> classes = {all};
  for (std::size_t a = 0; a < placement.axes.size(); ++a) {
    if (!has_fitting_shares(placement.axes[a])) continue;
    std::vector<ShareClass> parts;
    for (const ShareClass& whole : classes) divide(whole, placement.axes[a], a, parts);
    if (parts.size() > kMostClasses) return {all};
    classes = std::move(parts);
  }
  return classes;
}

std::vector<Bytes> capacities_of(const Cluster& cluster, const Placement& placement,
                                 const std::vector<MemoryClass>& classes) {
  std::vector<Bytes> out;
  out.reserve(classes.size());
  for (const MemoryClass& own : classes) {
    const GroupSet groups = groups_of_class(cluster, placement, own.stage, own.coordinates);
    Bytes smallest = cluster.groups[groups.front()].device.memory;
    for (const std::size_t g : groups) {
      smallest = std::min(smallest, cluster.groups[g].device.memory);
    }
    out.push_back(smallest);
  }
  return out;
}

}  // namespace placet
