// The entry of libFuzzer: bad input is what a parser is there for, everything else ends the run.
#include <cstddef>
#include <cstdint>

#include "target.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls the function by this name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    placet::fuzz::read_one({reinterpret_cast<const char*>(data), size});
  } catch (const placet::InputError&) {
    return 0;
  }
  return 0;
}
