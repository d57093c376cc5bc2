// What a buffer's type means on one device: extents, and which part of the logical tensors it is.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"

namespace placet::ranks {

using Extents = std::vector<std::int64_t>;

/// The product of the extents.
std::int64_t elements_in(const Extents& extents);

/// One tensor of a buffer before the row of all is divided.
struct LocalPiece {
  Extents begins;  // in the logical tensor
  Extents extents;
  std::int64_t row = 0;   // where it begins in the row of all pieces
  std::int64_t size = 0;  // elements
};

/// A buffer on one device. `flat` is the part of the row that is there.
struct LocalShape {
  std::vector<LocalPiece> pieces;
  Part flat;
};

/// The shape of a buffer of that type at coordinates along all axes, the micro-batch included.
LocalShape shape_of(const Program& program, const BufferType& type, const ProgramCoordinates& at);

/// A run of a buffer's elements that an instruction works on. Extents are those of the one tensor
/// that it is; none where it is a part of a tensor or several tensors in a row.
struct BufferView {
  std::int64_t offset = 0;  // in the buffer
  std::int64_t size = 0;
  const Extents* extents = nullptr;
};

/// All of a buffer, or one piece of it (piece >= 0).
BufferView view_of(const LocalShape& shape, int piece);

/// A run of elements to be moved.
struct Run {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t length = 0;

  friend bool operator==(const Run&, const Run&) = default;
};

/// A box of elements inside a tensor with these extents.
struct Box {
  const Extents& extents;
  Extents begins;
};

/// The runs that take a box of extents `size` from one tensor to another, row by row.
/// Case: size [2 2] from [2 4] at [0 2] to [2 2] at [0 0]: {2, 0, 2} and {6, 2, 2}.
std::vector<Run> runs_between(const Box& from, const Box& to, const Extents& size);

}  // namespace placet::ranks
