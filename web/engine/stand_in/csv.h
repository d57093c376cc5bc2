/* Stands in for libcsv, whose licence asks that users can replace it: a page reads no tables of
   measured runs. What is asked to be read is not understood, and the reader says so. */
#pragma once

#include <stddef.h>

#define CSV_STRICT 1
#define CSV_STRICT_FINI 4

struct csv_parser {
  unsigned char unused;
};

static inline int csv_init(struct csv_parser*, unsigned char) { return 0; }
static inline void csv_free(struct csv_parser*) {}
static inline size_t csv_parse(struct csv_parser*, const void*, size_t,
                               void (*)(void*, size_t, void*), void (*)(int, void*), void*) {
  return 0;
}
static inline int csv_fini(struct csv_parser*, void (*)(void*, size_t, void*), void (*)(int, void*),
                           void*) {
  return -1;
}
