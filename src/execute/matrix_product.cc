#include "execute/matrix_product.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "execute/blas.h"

namespace placet::execute {
namespace {

constexpr int kRowMajor = 101;
constexpr int kAsItIs = 111;
constexpr int kTurned = 112;

/// Rows of a matrix in memory: those of the matrix, or its columns.
struct Layout {
  int turned = kAsItIs;
  int row = 1;
};

Layout layout_of(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column) {
  const bool as_it_is = columns == 1 || column == 1;
  const std::int64_t length = as_it_is ? columns : rows;
  const std::int64_t lines = as_it_is ? rows : columns;
  const std::int64_t apart = lines == 1 ? length : as_it_is ? row : column;
  return {as_it_is ? kAsItIs : kTurned, static_cast<int>(std::max(apart, length))};
}

/// Blocks that stay in a small cache, rows of the result innermost where they follow each other.
template <class Real>
void add_by_loops(const MatrixProduct& n, const Matrix<const Real*>& a,
                  const Matrix<const Real*>& b, const Matrix<Real*>& result) {
  constexpr std::int64_t kBlock = 64;
  const auto scale = static_cast<Real>(n.scale);
  for (std::int64_t i = 0; i < n.rows && n.kept == 0; ++i) {
    for (std::int64_t j = 0; j < n.columns; ++j) {
      result.first[i * result.row + j * result.column] = 0;
    }
  }
  const auto add_row = [&](std::int64_t i, std::int64_t k) {
    Real* to = result.first + i * result.row;
    const Real x = scale * a.first[i * a.row + k * a.column];
    const Real* y = b.first + k * b.row;
    for (std::int64_t j = 0; j < n.columns; ++j) to[j * result.column] += x * y[j * b.column];
  };
  for (std::int64_t first = 0; first < n.terms; first += kBlock) {
    const std::int64_t end = std::min(n.terms, first + kBlock);
    for (std::int64_t i = 0; i < n.rows; ++i) {
      for (std::int64_t k = first; k < end; ++k) add_row(i, k);
    }
  }
}

/// Whether a library takes all numbers that it is told.
template <class A, class B>
bool is_short(const MatrixProduct& n, const Matrix<A>& a, const Matrix<A>& b, const Matrix<B>& c) {
  return std::max({n.rows, n.columns, n.terms, a.row, a.column, b.row, b.column, c.row,
                   c.column}) <= std::numeric_limits<int>::max();
}

template <class Real, class Function>
void add(Function function, const MatrixProduct& n, const Matrix<const Real*>& a,
         const Matrix<const Real*>& b, const Matrix<Real*>& result) {
  // Libraries read nothing where the scale is zero: what is no number would be lost.
  const bool can = function != nullptr && n.scale != 0 && is_short(n, a, b, result);
  if (!can) return add_by_loops(n, a, b, result);
  const Layout to = layout_of(n.rows, n.columns, result.row, result.column);
  if (to.turned == kTurned) {  // the transposed result is b's times a's
    MatrixProduct turned = n;
    std::swap(turned.rows, turned.columns);
    return add(function, turned, {b.first, b.column, b.row}, {a.first, a.column, a.row},
               Matrix<Real*>{result.first, result.column, result.row});
  }
  const Layout from = layout_of(n.rows, n.terms, a.row, a.column);
  const Layout with = layout_of(n.terms, n.columns, b.row, b.column);
  function(kRowMajor, from.turned, with.turned, static_cast<int>(n.rows),
           static_cast<int>(n.columns), static_cast<int>(n.terms), static_cast<Real>(n.scale),
           a.first, from.row, b.first, with.row, static_cast<Real>(n.kept), result.first, to.row);
}

}  // namespace

void add_product(const MatrixProduct& product, const Matrix<const float*>& a,
                 const Matrix<const float*>& b, const Matrix<float*>& result) {
  add(blas().single, product, a, b, result);
}

void add_product(const MatrixProduct& product, const Matrix<const double*>& a,
                 const Matrix<const double*>& b, const Matrix<double*>& result) {
  add(blas().twice, product, a, b, result);
}

std::string matrix_library() { return blas().library; }

}  // namespace placet::execute
