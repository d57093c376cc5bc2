#include "derive/device_classes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "units/checked.h"

namespace placet {
namespace {

constexpr std::size_t kMostClasses = 256;
constexpr std::int64_t kMostRanks = std::int64_t{1} << 20;

/// Shares that fit their axis: another number of them is a finding of the rules.
bool has_fitting_shares(const AxisPlacement& axis) {
  return !axis.shares.empty() && axis.how.cut != Cut::layer &&
         std::cmp_equal(axis.shares.size(), axis.degree);
}

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

/// Which stage and which shares the device with these coordinates has.
bool is_of(const MemoryClass& memory, const Placement& placement,
           const std::vector<std::int64_t>& coordinates) {
  std::int64_t stage = 0;
  for (std::size_t a = 0; a < placement.axes.size(); ++a) {
    const AxisPlacement& axis = placement.axes[a];
    if (axis.how.cut == Cut::layer) stage = stage * axis.degree + coordinates[a];
    if (!has_fitting_shares(axis) || memory.coordinates.empty()) continue;
    const auto own = static_cast<std::size_t>(memory.coordinates[a]);
    if (axis.shares[own] != axis.shares[static_cast<std::size_t>(coordinates[a])]) return false;
  }
  return stage == memory.stage;
}

/// Steps to the next rank, row by row.
void advance(std::vector<std::int64_t>& coordinates, const Placement& placement) {
  for (std::size_t a = placement.axes.size(); a-- > 0;) {
    if (++coordinates[a] < placement.axes[a].degree) return;
    coordinates[a] = 0;
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
  const Bytes smallest = smallest_memory(cluster);
  const std::int64_t ranks = std::min(devices_of(placement), devices_of(cluster));
  const bool mixed = std::ranges::any_of(
      cluster.groups, [&](const DeviceGroup& group) { return group.device.memory != smallest; });
  if (!mixed || ranks > kMostRanks) return std::vector<Bytes>(classes.size(), smallest);
  std::vector<Bytes> out(classes.size());
  std::vector<std::int64_t> coordinates(placement.axes.size(), 0);
  std::size_t group = 0;
  std::int64_t end = cluster.groups.front().count;
  for (std::int64_t rank = 0; rank < ranks; ++rank, advance(coordinates, placement)) {
    while (rank >= end) end += cluster.groups[++group].count;
    const Bytes memory = cluster.groups[group].device.memory;
    for (std::size_t c = 0; c < classes.size(); ++c) {
      const bool lowers = out[c] == Bytes() || memory < out[c];
      if (lowers && is_of(classes[c], placement, coordinates)) out[c] = memory;
    }
  }
  for (Bytes& capacity : out) {
    if (capacity == Bytes()) capacity = smallest;
  }
  return out;
}

}  // namespace placet
