// Functions that are compiled for several generations of processors, of which the program takes
// what is there. Without contraction of products and sums the bits are the same on all.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PLACET_FOR_PROCESSORS \
  __attribute__((flatten, target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PLACET_FOR_PROCESSORS
#endif
