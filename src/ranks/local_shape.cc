#include "ranks/local_shape.h"

#include <algorithm>

#include "units/checked.h"
#include "units/error.h"

namespace placet::ranks {

std::int64_t elements_in(const Extents& extents) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : extents) {
    elements = checked_multiply(elements, extent, "elements");
  }
  return elements;
}

LocalShape shape_of(const Program& program, const BufferType& type, const ProgramCoordinates& at) {
  LocalShape shape;
  std::int64_t row = 0;
  for (const PieceType& piece : type.pieces) {
    LocalPiece local{.row = row};
    for (const DividedDim& dim : piece.dims) {
      const LogicalDim& logical = program.dims.at(static_cast<std::size_t>(dim.dim));
      const Part part = part_of(logical.extent, dim.by, dim.shift, program.axes, at);
      local.begins.push_back(part.begin);
      local.extents.push_back(part.size);
    }
    local.size = elements_in(local.extents);
    row = checked_add(row, local.size, "elements");
    shape.pieces.push_back(std::move(local));
  }
  shape.flat = part_of(row, one_by_one(type.flat), program.axes, at);
  return shape;
}

BufferView view_of(const LocalShape& shape, int piece) {
  if (piece < 0) {
    const bool is_one = shape.pieces.size() == 1 && shape.pieces[0].size == shape.flat.size;
    return {.offset = 0,
            .size = shape.flat.size,
            .extents = is_one ? &shape.pieces[0].extents : nullptr};
  }
  const LocalPiece& local = shape.pieces.at(static_cast<std::size_t>(piece));
  const std::int64_t begin = std::max(local.row, shape.flat.begin);
  const std::int64_t end = std::min(local.row + local.size, shape.flat.begin + shape.flat.size);
  const std::int64_t size = std::max<std::int64_t>(end - begin, 0);
  return {.offset = size > 0 ? begin - shape.flat.begin : 0,
          .size = size,
          .extents = size == local.size ? &local.extents : nullptr};
}

namespace {

/// The run's first elements taken for indices so far, one dim further: a run along the last dim,
/// single elements along others.
void add_next(const Run& run, const Run& begin, std::int64_t size, bool is_last,
              std::vector<Run>& next) {
  if (is_last) {
    if (size > 0) next.push_back({.from = begin.from, .to = begin.to, .length = size});
    return;
  }
  for (std::int64_t i = 0; i < size; ++i) {
    next.push_back({.from = begin.from + i, .to = begin.to + i, .length = run.length});
  }
}

/// Neighbours that continue each other on both sides are one.
std::vector<Run> joined(const std::vector<Run>& runs) {
  std::vector<Run> result;
  for (const Run& run : runs) {
    const bool continues = !result.empty() &&
                           result.back().from + result.back().length == run.from &&
                           result.back().to + result.back().length == run.to;
    if (continues) {
      result.back().length += run.length;
    } else {
      result.push_back(run);
    }
  }
  return result;
}

}  // namespace

std::vector<Run> runs_between(const Box& from, const Box& to, const Extents& size) {
  ensure(from.extents.size() == size.size() && to.extents.size() == size.size(),
         "a box has the dims of both tensors");
  std::vector<Run> runs{{.from = 0, .to = 0, .length = 1}};
  for (std::size_t d = 0; d < size.size(); ++d) {
    std::vector<Run> next;
    next.reserve(runs.size() * static_cast<std::size_t>(size[d]));
    for (const Run& run : runs) {
      const Run begin{.from = run.from * from.extents[d] + from.begins[d],
                      .to = run.to * to.extents[d] + to.begins[d]};
      add_next(run, begin, size[d], d + 1 == size.size(), next);
    }
    runs = std::move(next);
  }
  return joined(runs);
}

}  // namespace placet::ranks
