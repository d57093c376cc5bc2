// A table from hashes to numbers: which of many things an equal one is. Inside of check/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace placet {

/// Things that stand elsewhere under numbers from 0, to be found by their hash. Every check makes
/// hundreds of thousands: a place takes 8 bytes, and half of the places are free.
class NumbersByHash {
 public:
  /// The number under this hash of which `is_it` says yes; -1: there is none.
  template <class Is>
  int find(std::uint64_t hash, Is is_it) const {
    if (places_.empty()) return -1;
    const std::uint32_t tag = tag_of(hash);
    for (std::size_t p = tag & mask(); places_[p].number >= 0; p = (p + 1) & mask()) {
      if (places_[p].tag == tag && is_it(places_[p].number)) return places_[p].number;
    }
    return -1;
  }

  void add(std::uint64_t hash, int number) {
    if (++count_ * 2 > places_.size()) grow();
    put({.tag = tag_of(hash), .number = number});
  }

  void clear() {
    places_ = {};
    count_ = 0;
  }

 private:
  struct Place {
    std::uint32_t tag = 0;
    int number = -1;  // below 0: free
  };

  static std::uint32_t tag_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash ^ (hash >> 32));
  }
  std::size_t mask() const { return places_.size() - 1; }

  void put(const Place& place) {
    std::size_t p = place.tag & mask();
    while (places_[p].number >= 0) p = (p + 1) & mask();
    places_[p] = place;
  }

  void grow() {
    constexpr std::size_t kFirst = 64;
    std::vector<Place> old(places_.empty() ? kFirst : 2 * places_.size());
    old.swap(places_);
    for (const Place& place : old) {
      if (place.number >= 0) put(place);
    }
  }

  std::vector<Place> places_;  // a power of two
  std::size_t count_ = 0;
};

}  // namespace placet
