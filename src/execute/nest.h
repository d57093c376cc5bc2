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

/// Calls row(places of its first entry, by tensor) for each row.
template <class Row>
void for_each_row(const Nest& nest, const Row& row) {
  if (nest.size() == 0) return;
  const std::size_t loops = nest.extents.size() - 1;
  std::array<std::int64_t, kMostLoops> at{};
  std::array<std::int64_t, Nest::kMostTensors> places{};
  while (true) {
    row(places.data());
    std::size_t d = loops;
    for (; d > 0; --d) {
      const std::vector<std::int64_t>& strides = nest.strides[d - 1];
      if (++at[d - 1] < nest.extents[d - 1]) {
        for (std::size_t t = 0; t < nest.tensors; ++t) places[t] += strides[t];
        break;
      }
      at[d - 1] = 0;
      const std::int64_t back = nest.extents[d - 1] - 1;
      for (std::size_t t = 0; t < nest.tensors; ++t) places[t] -= back * strides[t];
    }
    if (d == 0) return;
  }
}

}  // namespace placet::execute
