#include "program/tensor.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

std::size_t at_of(int i) { return static_cast<std::size_t>(i); }

/// Sizes of all parts: each its proportion rounded down, and what that leaves over one piece each
/// to those with a remainder, the largest shares first, equal ones in order. Case: 10 over shares
/// 3,2,2: 5, 3, 2.
std::vector<std::int64_t> proportional_sizes(std::int64_t length,
                                             const std::vector<std::int64_t>& shares) {
  std::int64_t sum = 0;
  for (const std::int64_t share : shares) sum = checked_add(sum, share, "shares");
  const auto rounded_up = [&](std::int64_t share) {
    return in_bytes(part_rounded_up(bytes(length), Rational(share, sum)));
  };
  std::vector<std::int64_t> sizes;
  std::vector<std::size_t> rounded;  // coordinates with a remainder
  std::int64_t left = length;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    sizes.push_back(length - rounded_up(sum - shares[i]));
    left -= sizes[i];
    if (sizes[i] != rounded_up(shares[i])) rounded.push_back(i);
  }
  std::ranges::stable_sort(rounded, std::greater<>(), [&](std::size_t i) { return shares[i]; });
  for (std::size_t i = 0; i < static_cast<std::size_t>(left); ++i) ++sizes[rounded[i]];
  return sizes;
}

Part proportional(Part whole, const std::vector<std::int64_t>& shares, std::int64_t coordinate) {
  const std::vector<std::int64_t> sizes = proportional_sizes(whole.size, shares);
  const auto own = sizes.begin() + coordinate;
  return {.begin = std::accumulate(sizes.begin(), own, whole.begin), .size = *own};
}

}  // namespace

Division one_by_one(const AxisList& axes) {
  Division levels;
  for (int axis : axes) levels.push_back({axis});
  return levels;
}

Part part_of(std::int64_t length, const AxisList& level, const std::vector<ProgramAxis>& axes,
             const ProgramCoordinates& at) {
  Part part{.begin = 0, .size = length};
  std::int64_t n = 1;
  std::int64_t index = 0;
  for (int a : level) {
    const ProgramAxis& axis = axes.at(at_of(a));
    const std::int64_t coordinate = at.at(at_of(a));
    if (!axis.shares.empty()) {
      part = proportional(part, axis.shares, coordinate);
      continue;
    }
    n = checked_multiply(n, axis.degree, "product of degrees");
    index = index * axis.degree + coordinate;
  }
  return {.begin = part.begin + share_begin(part.size, n, index),
          .size = share_of(part.size, n, index)};
}

Part part_of(std::int64_t length, const Division& division, const std::vector<ProgramAxis>& axes,
             const ProgramCoordinates& at) {
  Part part{.begin = 0, .size = length};
  for (const AxisList& level : division) {
    const Part inner = part_of(part.size, level, axes, at);
    part = {.begin = part.begin + inner.begin, .size = inner.size};
  }
  return part;
}

Part part_of(std::int64_t length, const Division& division, std::int64_t shift,
             const std::vector<ProgramAxis>& axes, const ProgramCoordinates& at) {
  if (shift == 0 || division.empty()) return part_of(length, division, axes, at);
  ProgramCoordinates there = at;
  const std::size_t ring = at_of(division.back().back());
  there.at(ring) = (at.at(ring) + shift) % axes.at(ring).degree;
  return part_of(length, division, axes, there);
}

}  // namespace placet
