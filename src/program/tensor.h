// Tensors of a step program: logical dims, how mesh axes divide them, and the types of buffers
// (docs/theory.md §6.1).
//
// A buffer's type says only how large it is on each device. What it holds there is not written
// anywhere: readers of a program work it out from the initial state and the instructions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/dtype.h"
#include "units/rational.h"

namespace placet {

/// One logical dimension of the training step: "sample", "hidden", "ffn". Tensors of the reference
/// are made of whole ones.
struct LogicalDim {
  std::string name;
  std::int64_t extent = 1;
  /// A dim of experts, of which each token visits `chosen`: of a tensor [token, expert, ...] only
  /// the visited entries are stored. 0: all entries are.
  std::int64_t chosen = 0;

  friend bool operator==(const LogicalDim&, const LogicalDim&) = default;
};

/// An axis of the program's mesh. Coordinates are row-major, outermost axis first; the last axis of
/// a program is not of the mesh: it counts the micro-batches of a step.
struct ProgramAxis {
  std::string name;
  std::int64_t degree = 1;
  std::vector<std::int64_t> shares;  // proportions by coordinate; empty: even

  friend bool operator==(const ProgramAxis&, const ProgramAxis&) = default;
};

/// Axes, by position, that divide a length in one go: the owner of a part is the row-major index
/// over them. Axes with shares divide first and one by one, in their order; see `part_of`.
using AxisList = std::vector<int>;

/// How a dim is divided: by the first level, the parts by the second, ... Empty: whole.
using Division = std::vector<AxisList>;

/// Each axis a level of its own: how rows of elements are divided. What some first axes divide is
/// the union of what all of them divide, whether the lengths come out even or not, so that a row
/// can be scattered and put together along some axes at a time.
/// Case: 10 over 2, then 2: 3, 2, 3, 2, where the first axis alone has 5 and 5.
Division one_by_one(const AxisList& axes);

/// A dim of a buffer and how it is divided.
struct DividedDim {
  int dim = 0;  // position in Program::dims
  Division by;
  /// The part is that of the device so many places further on along the axis that divides last
  /// (which then is a level of its own): what goes round a ring. 0: the device's own.
  std::int64_t shift = 0;

  friend bool operator==(const DividedDim&, const DividedDim&) = default;
};

/// One tensor inside a buffer.
struct PieceType {
  std::vector<DividedDim> dims;

  friend bool operator==(const PieceType&, const PieceType&) = default;
};

/// The type of a buffer: tensors laid one after the other. With `flat`, the row of all their
/// elements is divided once more, by these axes one after the other (`one_by_one`).
/// Case: one piece [hidden 8/tp, ffn 6], flat over dp, tp = dp = 2: 24 elements, of which a device
/// has 12.
struct BufferType {
  Dtype dtype = Dtype::fp32;
  std::vector<PieceType> pieces;
  AxisList flat;

  friend bool operator==(const BufferType&, const BufferType&) = default;
};

/// A run [begin, begin + size) of a length.
struct Part {
  std::int64_t begin = 0;
  std::int64_t size = 0;

  friend bool operator==(const Part&, const Part&) = default;
};

/// Coordinates of a device along all axes of a program; the last one is the micro-batch.
using ProgramCoordinates = std::vector<std::int64_t>;

/// The part of a length that a device has when `level` divides it. An exact partition: axes with
/// shares divide in proportion, first; the others together, the first owners one larger.
/// Case: 10 over two even axes of 2 x 2: 3, 3, 2, 2.
Part part_of(std::int64_t length, const AxisList& level, const std::vector<ProgramAxis>& axes,
             const ProgramCoordinates& at);
/// The same for all levels of a division.
Part part_of(std::int64_t length, const Division& division, const std::vector<ProgramAxis>& axes,
             const ProgramCoordinates& at);
/// The same of the device `shift` places further on along the axis that divides last, after the
/// last one the first again. Case: 10 over 4 at coordinate 3, shift 1: the first part, [0, 3).
Part part_of(std::int64_t length, const Division& division, std::int64_t shift,
             const std::vector<ProgramAxis>& axes, const ProgramCoordinates& at);

}  // namespace placet
