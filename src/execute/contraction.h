// Sums of products of floating numbers, planned once: of several factors the two that go through
// the fewest entries together become one, and what is left of two becomes products of matrices
// (docs/theory.md §6.11).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "execute/matrix_product.h"
#include "execute/nest.h"
#include "ranks/kernel_code.h"

namespace placet::execute {

/// A sum over loops of products, by the places of each tensor in these loops.
struct SumOfProducts {
  std::vector<ranks::PlaceLoop> result;                // stride 0: summed over
  std::vector<std::vector<ranks::PlaceLoop>> factors;  // each with the same loops
};

/// A product of a linear statement, and the scores of a function of two vectors. `result` is where
/// the result stands by entry.
SumOfProducts sum_of(const ranks::ProductCode& product, const ranks::Places& result);
SumOfProducts sum_of_scores(const ranks::FunctionCode& function);

class Contraction {
 public:
  explicit Contraction(const SumOfProducts& sum);

  /// How many numbers of room it uses at most.
  std::int64_t room_entries() const;
  /// result += scale * the sum. `room` is used for what is made on the way.
  template <class Real>
  void add(const Real* const* factors, double scale, Real* result, std::vector<Real>& room) const {
    compute(factors, scale, 1, result, room);
  }
  /// result = scale * the sum.
  template <class Real>
  void set(const Real* const* factors, double scale, Real* result, std::int64_t size,
           std::vector<Real>& room) const {
    if (!writes_each_once_) std::fill_n(result, size, Real{});
    compute(factors, scale, writes_each_once_ ? 0 : 1, result, room);
  }

 private:
  using Strides = std::vector<std::int64_t>;  // by axis; 0: does not go along it
  struct Factor {
    int number = 0;  // of those given; -1 - k: the k-th that is made
    Strides strides;
  };
  /// A factor made of one or two others, summed over the axes that it lacks.
  struct Made {
    std::vector<int> from;
    Nest nest;  // itself, then those
    std::int64_t place = 0;
    std::int64_t size = 0;
  };
  /// Axes that matrices go along as one, and the loops around them.
  struct Matrices {
    std::int64_t rows = 1, columns = 1, terms = 1;
    std::int64_t result_row = 0, result_column = 0;
    std::int64_t a_row = 0, a_column = 0;
    std::int64_t b_row = 0, b_column = 0;
    Nest around;  // result, a, b
  };

  template <class Real>
  void compute(const Real* const* factors, double scale, double kept, Real* result,
               std::vector<Real>& room) const;
  std::int64_t size_of(const Strides& strides) const;
  Factor make(const std::vector<Factor>& from, const std::vector<bool>& keeps);
  bool multiply_some(std::vector<Factor>& factors);
  void sum_alone(Factor& one, const Factor& other);
  struct Kinds {
    std::vector<std::size_t> rows, columns, terms;
  };
  std::optional<Kinds> kinds_of(const Factor& a, const Factor& b) const;
  bool plan_matrices(const Factor& a, const Factor& b);
  struct Joined {
    std::int64_t extent = 1, first = 0, second = 0;
    std::vector<std::size_t> axes;
  };
  Joined longest(const std::vector<std::size_t>& axes, const Strides& one,
                 const Strides& other) const;
  std::vector<bool> axes_of(const std::vector<const Strides*>& tensors) const;
  Nest nest_over(const std::vector<bool>& axes, const std::vector<const Strides*>& tensors) const;
  template <class Real>
  const Real* numbers_of(int factor, const Real* const* factors, const Real* room) const;
  template <class Real>
  void multiply(const std::vector<const Real*>& factors, const MatrixProduct& product, Real* result,
                Real* room) const;

  std::vector<std::int64_t> extents_;  // by axis
  Strides result_;
  std::vector<int> scalars_;  // factors of a single number
  std::vector<Made> made_;
  std::int64_t room_ = 0;  // numbers that are made
  std::vector<int> last_;  // the factors of the last step
  Nest loops_;             // of the last step, without matrices: result, then those
  Matrices matrices_;
  bool has_matrices_ = false;
  bool writes_each_once_ = false;  // every number of the result, in one product of matrices
};

}  // namespace placet::execute
