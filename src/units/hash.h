// Mixing numbers into a hash, for tables in memory: not the same from one machine to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace placet {

/// `hash` with one more number in it.
inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio: spreads bits
  hash = (hash ^ value) * kOdd;
  return hash ^ (hash >> 32);
}

inline std::uint64_t mixed(std::uint64_t hash, const std::vector<int>& values) {
  hash = mixed(hash, values.size());
  for (const int v : values) hash = mixed(hash, static_cast<std::uint64_t>(v));
  return hash;
}

struct IntsHash {
  std::size_t operator()(const std::vector<int>& values) const {
    return static_cast<std::size_t>(mixed(0, values));
  }
};

}  // namespace placet
