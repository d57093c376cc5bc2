// The products of a BLAS library that is looked for when the first is asked for, so that nothing
// that needs none waits for it.
#pragma once

#include <string>

namespace placet::execute {

// Of the standard C interface (cblas.h): order 101 is row-major; 111 as it is, 112 transposed.
using SingleProduct = void (*)(int order, int a_turned, int b_turned, int rows, int columns,
                               int terms, float scale, const float* a, int a_row, const float* b,
                               int b_row, float kept, float* result, int result_row);
using DoubleProduct = void (*)(int order, int a_turned, int b_turned, int rows, int columns,
                               int terms, double scale, const double* a, int a_row, const double* b,
                               int b_row, double kept, double* result, int result_row);

struct Blas {
  std::string library;  // empty: there is none
  SingleProduct single = nullptr;
  DoubleProduct twice = nullptr;
};

/// Single-threaded: its bits depend on the library, the processor and the shapes, but not on how
/// many ranks there are beside. PLACET_BLAS names a library, or `none`. Throws InputError for one
/// that cannot be opened or has no such products.
const Blas& blas();

}  // namespace placet::execute
