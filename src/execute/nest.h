// Nested loops over the entries of several tensors, row by row (docs/theory.md §6.11).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ranks/places.h"

namespace placet::execute {

inline constexpr std::size_t kMostLoops = 16;

/// The last loop is the row. Loops are outermost first; there are kMostLoops at most.
struct Nest {
  static constexpr std::size_t kMostTensors = 16;
  std::size_t tensors = 0;
  std::vector<std::int64_t> extents;               // by loop; at least one
  std::vector<std::vector<std::int64_t>> strides;  // by loop and tensor

  std::int64_t row() const { return extents.back(); }
  /// How far apart the entries of a row stand in a tensor.
  std::int64_t stride(std::size_t tensor) const { return strides.back()[tensor]; }
  std::int64_t size() const;
};

/// Loops that all these tensors go through, by loop in each: those without an extent are left out,
/// and those that no tensor can tell apart are joined. Throws InputError for too many.
Nest nest_of(const std::vector<std::vector<ranks::PlaceLoop>>& tensors);

/// The loops of the one and then those of the other.
std::vector<ranks::PlaceLoop> joined(const ranks::Places& outer, const ranks::Places& inner);

/// Goes from one row of a nest to the next.
class RowWalk {
 public:
  explicit RowWalk(const Nest& nest) : nest_(nest), loops_(nest.extents.size() - 1) {}

  /// By tensor, the place of the row's first entry.
  const std::int64_t* places() const { return places_.data(); }
  /// False: it was the last.
  bool next() {
    for (std::size_t d = loops_; d > 0; --d) {
      if (++at_[d - 1] < nest_.extents[d - 1]) {
        move(d - 1, 1);
        return true;
      }
      at_[d - 1] = 0;
      move(d - 1, 1 - nest_.extents[d - 1]);
    }
    return false;
  }

 private:
  void move(std::size_t loop, std::int64_t steps) {
    const std::vector<std::int64_t>& strides = nest_.strides[loop];
    for (std::size_t t = 0; t < nest_.tensors; ++t) places_[t] += steps * strides[t];
  }

  const Nest& nest_;
  std::size_t loops_;
  std::array<std::int64_t, kMostLoops> at_{};
  std::array<std::int64_t, Nest::kMostTensors> places_{};
};

/// Calls row(places of its first entry, by tensor) for each row.
template <class Row>
void for_each_row(const Nest& nest, const Row& row) {
  if (nest.size() == 0) return;
  RowWalk walk(nest);
  do {
    row(walk.places());
  } while (walk.next());
}

/// Calls one(places, by tensor) for each entry.
template <class One>
void for_each_entry(const Nest& nest, const One& one) {
  for_each_row(nest, [&](const std::int64_t* places) {
    std::array<std::int64_t, Nest::kMostTensors> now{};
    for (std::size_t t = 0; t < nest.tensors; ++t) now[t] = places[t];
    for (std::int64_t k = 0; k < nest.row(); ++k) {
      one(now.data());
      for (std::size_t t = 0; t < nest.tensors; ++t) now[t] += nest.stride(t);
    }
  });
}

}  // namespace placet::execute
