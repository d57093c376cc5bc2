#include "program/sizes.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "units/checked.h"

namespace placet {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// Entries of a tensor on a device.
std::int64_t entries(const Program& p, const PieceType& piece, const ProgramCoordinates& at) {
  const std::vector<std::int64_t> extents = local_extents(p, piece, at);
  std::int64_t product = 1;
  for (std::int64_t extent : extents) product = checked_multiply(product, extent, "entries");
  for (std::size_t d = 1; d < piece.dims.size(); ++d) {
    const LogicalDim& dim = p.dims[index(piece.dims[d].dim)];
    if (dim.chosen == 0) continue;
    product = checked_multiply(product, dim.chosen, "entries");
    product = product / dim.extent + (product % dim.extent != 0 ? 1 : 0);
  }
  return product;
}

std::vector<std::int64_t> all_coordinates(const Program& p, const DeviceClass& c,
                                          std::size_t axis) {
  if (axis < c.box.size() && !c.box[axis].empty()) return c.box[axis];
  std::vector<std::int64_t> all(static_cast<std::size_t>(p.axes[axis].degree));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Coordinates of the class along an axis; of an even one at least the first and last.
std::vector<std::int64_t> coordinates(const Program& p, const DeviceClass& c, std::size_t axis) {
  const bool boxed = axis < c.box.size() && !c.box[axis].empty();
  if (!boxed && p.axes[axis].shares.empty()) return {0, p.axes[axis].degree - 1};
  return all_coordinates(p, c, axis);
}

/// Axes along which a tensor's part is that of another device: which one has the largest depends on
/// how many places further on that is.
std::vector<bool> shifting_axes(const Program& p, const BufferType& type) {
  std::vector<bool> found(p.axes.size(), false);
  for (const PieceType& piece : type.pieces) {
    for (const DividedDim& dim : piece.dims) {
      if (dim.shift != 0) found[index(dim.by.back().back())] = true;
    }
  }
  return found;
}

/// Those along each axis that may give the largest part.
std::vector<std::vector<std::int64_t>> candidates(const Program& p, const BufferType& type,
                                                  const DeviceClass& c) {
  const std::vector<bool> dividing = dividing_axes(p, type);
  bool uneven = false;
  for (std::size_t a = 0; a < p.axes.size(); ++a) {
    uneven = uneven || (dividing[a] && !p.axes[a].shares.empty());
  }
  const std::vector<bool> shifted = shifting_axes(p, type);
  std::vector<std::vector<std::int64_t>> out;
  for (std::size_t a = 0; a < p.axes.size(); ++a) {
    std::vector<std::int64_t> all = coordinates(p, c, a);
    if (shifted[a]) {
      all = all_coordinates(p, c, a);
    } else if (!dividing[a] || !uneven) {
      all = {all.front()};
    } else if (p.axes[a].shares.empty()) {
      // An even part has one of two sizes, the larger one first.
      all = {all.front(), all.back()};
    }
    out.push_back(std::move(all));
  }
  return out;
}

}  // namespace

std::vector<bool> dividing_axes(const Program& program, const BufferType& type) {
  std::vector<bool> found(program.axes.size(), false);
  const auto mark = [&](const AxisList& level) {
    for (int a : level) found[index(a)] = true;
  };
  for (const PieceType& piece : type.pieces) {
    for (const DividedDim& dim : piece.dims) std::ranges::for_each(dim.by, mark);
  }
  mark(type.flat);
  return found;
}

std::vector<std::int64_t> local_extents(const Program& program, const PieceType& piece,
                                        const ProgramCoordinates& at) {
  std::vector<std::int64_t> extents;
  extents.reserve(piece.dims.size());
  for (const DividedDim& dim : piece.dims) {
    const std::int64_t whole = program.dims[index(dim.dim)].extent;
    extents.push_back(part_of(whole, dim.by, dim.shift, program.axes, at).size);
  }
  return extents;
}

std::int64_t stored_entries(const Program& program, const BufferType& type,
                            const ProgramCoordinates& at) {
  std::int64_t sum = 0;
  for (const PieceType& piece : type.pieces) {
    sum = checked_add(sum, entries(program, piece, at), "entries");
  }
  return part_of(sum, one_by_one(type.flat), program.axes, at).size;
}

Bytes stored_bytes(const Program& program, const BufferType& type, const ProgramCoordinates& at) {
  return bytes_of(stored_entries(program, type, at), type.dtype);
}

Bytes largest_bytes(const Program& program, const BufferType& type,
                    const DeviceClass& device_class) {
  const std::vector<std::vector<std::int64_t>> tried = candidates(program, type, device_class);
  std::vector<std::size_t> which(tried.size(), 0);
  ProgramCoordinates at(tried.size(), 0);
  Bytes largest = bytes(0);
  while (true) {
    for (std::size_t a = 0; a < at.size(); ++a) at[a] = tried[a][which[a]];
    largest = std::max(largest, stored_bytes(program, type, at));
    std::size_t a = 0;
    while (a < which.size() && ++which[a] == tried[a].size()) which[a++] = 0;
    if (a == which.size()) return largest;
  }
}

}  // namespace placet
