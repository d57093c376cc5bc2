// Functions that are compiled for several generations of processors, of which the program takes
// what is there. Without contraction of products and sums the bits are the same on all. A macro, as
// attributes cannot be named otherwise; it needs the linker of the GNU C library.
#pragma once

#include <climits>  // says which C library it is

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PLACET_FOR_PROCESSORS \
  __attribute__((flatten, target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PLACET_FOR_PROCESSORS
#endif
