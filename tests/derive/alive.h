// Terms of a peak, for tests.
#pragma once

#include <string_view>

#include "derive/memory.h"

namespace placet {

/// The bytes of all terms of a peak with this name.
inline Bytes alive(const MemoryClass& memory, std::string_view what) {
  Bytes sum;
  for (const MemoryTerm& term : memory.terms) {
    if (term.what == what) sum += term.bytes;
  }
  return sum;
}

}  // namespace placet
