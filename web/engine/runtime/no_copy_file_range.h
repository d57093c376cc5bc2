// wasi-libc has no copy_file_range, which libc++ asks for wherever musl is.
#pragma once

#include <errno.h>
#include <sys/types.h>

inline ssize_t copy_file_range(int, off_t*, int, off_t*, size_t, unsigned) {
  errno = ENOSYS;
  return -1;
}
