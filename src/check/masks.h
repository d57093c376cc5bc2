// Causal masks (docs/theory.md §6.5): where the keys of a part lie behind its queries, nothing of
// it counts. A rule for all devices of a class at once cannot use that, as it depends on where a
// device stands. Inside of check/.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "program/program.h"

namespace placet {

/// Whether the kernel calls a function that is zero where a key's index is above the query's.
bool is_causal(const Kernel& kernel);

/// Between which dims of a tensor, by their place among its dims, its entries are zero where the
/// key's index is above the query's.
struct CausalPlaces {
  std::size_t query = 0, key = 0;
};
/// By tensor of a kernel: what causal functions make, and products that have such a factor.
/// Case: w = exp_dot(q, k; at t u), y[u t] = w[t u] * x[t]: of w {0, 1}, of y {1, 0}.
std::vector<std::optional<CausalPlaces>> causal_places(const Kernel& kernel);

/// Dims of a kernel: of queries and of keys.
using CausalDims = std::pair<int, int>;
/// Between which dims a product is zero, as one of its factors is; none: between none. `places`: of
/// the kernel.
std::optional<CausalDims> causal_dims(const Product& product,
                                      const std::vector<std::optional<CausalPlaces>>& places);

/// Pairs of dims, of queries and of keys, whose positions a kernel compares with each other and
/// uses for nothing else: its results depend on the distance of the two alone.
std::vector<CausalDims> compared_positions(const Kernel& kernel);

/// The same program with classes of one coordinate each along the axes that divide queries and keys
/// of causal kernels. None: there are no such axes, or too many classes.
std::optional<Program> with_masks_apart(const Program& program);

}  // namespace placet
