// One mesh for two factorisations of the same devices: dense layers and experts often divide them
// differently, and a placement is one mesh (docs/theory.md §5). Splitting axes until both are
// products of neighbours gives it, if it exists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace placet {

/// An axis of the common mesh, and the axis of either factorisation that it is a part of.
struct RefinedAxis {
  std::int64_t degree = 1;
  std::size_t first = 0;
  std::size_t second = 0;
  friend bool operator==(const RefinedAxis&, const RefinedAxis&) = default;
};

struct Refinement {
  std::vector<RefinedAxis> axes;      // outermost first; empty if there is no common mesh
  std::string problem;                // why there is none, with the values
  std::vector<std::int64_t> nearest;  // then: a second factorisation that has one

  friend bool operator==(const Refinement&, const Refinement&) = default;
};

/// The coarsest mesh of which both lists of degrees (outermost first) are products of neighbours.
/// Axes of degree 1 are left out. Degrees must be at least 1; throws InputError past 2^63.
/// Case: dense 4,8 and experts 2,8,2: 2,2,4,2, as 32 = (2 2)(4 2) = 2 (2 4) 2.
/// Case: dense 2,6 and experts 3,4: none, as 4 does not divide 6; the nearest are 2,6 and 4,3.
Refinement common_refinement(const std::vector<std::int64_t>& first,
                             const std::vector<std::int64_t>& second);

}  // namespace placet
