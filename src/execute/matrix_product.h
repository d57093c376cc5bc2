// Products of matrices of floating numbers, by the machine's BLAS where there is one
// (docs/architecture.md).
#pragma once

#include <cstdint>
#include <string>

namespace placet::execute {

/// Where the entries of a matrix stand.
template <class Pointer>
struct Matrix {
  Pointer first = nullptr;
  std::int64_t row = 0;     // from one row to the next
  std::int64_t column = 0;  // from one column to the next
};

struct MatrixProduct {
  std::int64_t rows = 1;     // of the result
  std::int64_t columns = 1;  // likewise
  std::int64_t terms = 1;
  double scale = 1;
  double kept = 1;
};

/// result = kept * result + scale * a b, kept 0 or 1; at 0 the result is not read. Of each matrix
/// either rows or columns follow each other without a gap, or there is one of them only.
void add_product(const MatrixProduct& product, const Matrix<const float*>& a,
                 const Matrix<const float*>& b, const Matrix<float*>& result);
void add_product(const MatrixProduct& product, const Matrix<const double*>& a,
                 const Matrix<const double*>& b, const Matrix<double*>& result);

/// The file of the library that multiplies; empty: our own loops do.
std::string matrix_library();

}  // namespace placet::execute
