// Numbers for names, the same in every run: what functions and random draws are known by.
#pragma once

#include <cstdint>
#include <string_view>

namespace placet::ranks {

/// A bijection of 64 bits in which every bit of the result depends on every bit of x.
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// A number for a name, the same in every run.
constexpr std::uint64_t number_of(std::string_view name) {
  std::uint64_t h = 0x9e3779b97f4a7c15U + name.size();
  for (const char c : name) h = mixed(h ^ static_cast<unsigned char>(c)) + 0x632be59bd9b4e019U;
  return h;
}

}  // namespace placet::ranks
