#include "program/tensor.h"

#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

std::size_t at_of(int i) { return static_cast<std::size_t>(i); }

/// Piece k of the length goes to the coordinate whose cumulated share it falls in.
Part proportional(Part whole, const std::vector<std::int64_t>& shares, std::int64_t coordinate) {
  std::int64_t sum = 0;
  for (std::int64_t share : shares) sum = checked_add(sum, share, "shares");
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < coordinate; ++i) before += shares.at(static_cast<std::size_t>(i));
  const std::int64_t after = before + shares.at(static_cast<std::size_t>(coordinate));
  const auto begin = [&](std::int64_t cumulated) {
    return in_bytes(part_rounded_up(bytes(whole.size), Rational(cumulated, sum)));
  };
  return {.begin = whole.begin + begin(before), .size = begin(after) - begin(before)};
}

}  // namespace

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

}  // namespace placet
