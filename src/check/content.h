// What a buffer holds: the tensors of its row (docs/theory.md §6.5). Inside of check/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "check/values.h"

namespace placet {

/// What a buffer holds: its tensors, how the row of their elements is divided, and the micro-batch
/// that divisions by micro-batches speak of (-1: none).
struct Content {
  std::vector<Tensor> pieces;
  Splits flat;
  std::int64_t micro_batch = -1;

  friend bool operator==(const Content&, const Content&) = default;
};

/// The same where it stands: what a kernel takes.
struct ContentView {
  std::span<const Tensor> pieces;
  const Splits* flat = nullptr;  // null: of no row
  std::int64_t micro_batch = -1;

  bool is_row() const { return flat != nullptr && !flat->empty(); }
};

inline ContentView view_of(const Content& content) {
  return {.pieces = content.pieces, .flat = &content.flat, .micro_batch = content.micro_batch};
}

std::uint64_t hash_of(const Content& content);

/// Tensors of rows whose elements were summed: how the row is made up and divided, and which of its
/// tensors it was. Two devices that lay out a row differently have other parts of its sums. Numbers
/// are below zero, and equal for equal rows.
class Rows {
 public:
  struct Row {
    Content shape;  // without values
    std::size_t piece = 0;
    /// Axes that divide other tensors of the row, into parts of several lengths: where the device's
    /// part of the row begins in this tensor depends on where along them it is.
    AxisList shifting = {};
    friend bool operator==(const Row&, const Row&) = default;
  };
  int number_of(const ContentView& content, std::size_t piece, const Regions& regions);
  const Row& at(int number) const { return rows_[static_cast<std::size_t>(-1 - number)]; }
  /// Whether a sum is over a part of a row that lies elsewhere on devices that differ along the
  /// axis.
  bool shifts(const OpenSum& sum, int axis) const;

 private:
  std::vector<Row> rows_;
};

template <class Which>
bool any_share(const Content& content, Which which) {
  return std::ranges::any_of(content.pieces, [&](const Tensor& t) { return any_share(t, which); });
}

/// Whether both are tensors of the same dims, divided alike.
bool same_shape(const Content& a, const Content& b);
bool same_shape(const ContentView& a, const ContentView& b);

/// Whether the device has only its part along the axis.
bool is_divided(const Splits& cuts, int axis);
bool is_divided(const Content& content, int axis);

/// Whether all its tensors are zero.
bool is_zero(const Content& content);

/// Whether some of it is made of what cannot be right.
bool is_odd(const Content& content);

/// What is of one micro-batch becomes a sum over several, of one so far. Entries of a part of the
/// samples stay what they are.
void settle_micro_batch(Content& content, int micro_axis);

}  // namespace placet
