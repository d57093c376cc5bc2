// How a length is divided among n owners: the one place that decides uneven shards.
//
// The exact share total/n need not be whole. Owners 0 .. total mod n - 1 hold one more than the
// rest, so that shares differ by at most one and every unit has exactly one owner:
//   10 over 4 owners: 3 3 2 2, beginning at 0 3 6 8.
// What a device must provide for is the largest share, ceil(total / n). An engine that divides
// otherwise (equal chunks with a short last one, padding to a multiple) says so in its profile; its
// padding is a term of its own.
//
// total >= 0, n >= 1 and 0 <= index < n are the caller's to keep (InternalError otherwise).
#pragma once

#include <cstdint>

#include "units/error.h"
#include "units/quantity.h"

namespace placet {

/// ceil(total / n): 10 over 4 gives 3.
constexpr std::int64_t largest_share(std::int64_t total, std::int64_t n) {
  ensure(total >= 0 && n >= 1, "a length of at least 0 is shared by at least 1 owner");
  return total / n + (total % n != 0 ? 1 : 0);
}

/// What owner `index` holds: 10 over 4 gives 3 to owner 1 and 2 to owner 2.
constexpr std::int64_t share_of(std::int64_t total, std::int64_t n, std::int64_t index) {
  ensure(total >= 0 && n >= 1, "a length of at least 0 is shared by at least 1 owner");
  ensure(index >= 0 && index < n, "an owner's index lies among the owners");
  return total / n + (index < total % n ? 1 : 0);
}

/// Where the share of owner `index` begins: 10 over 4 gives 6 to owner 2.
constexpr std::int64_t share_begin(std::int64_t total, std::int64_t n, std::int64_t index) {
  ensure(total >= 0 && n >= 1, "a length of at least 0 is shared by at least 1 owner");
  ensure(index >= 0 && index < n, "an owner's index lies among the owners");
  const std::int64_t larger = total % n;
  return index * (total / n) + (index < larger ? index : larger);
}

/// The same for quantities. A tensor of several bytes per element is divided by elements (Count)
/// first and turned into bytes afterwards: no owner holds half an element.
template <class Unit>
constexpr Whole<Unit> largest_share(Whole<Unit> total, std::int64_t n) {
  return Whole<Unit>::of(largest_share(total.units(), n));
}
template <class Unit>
constexpr Whole<Unit> share_of(Whole<Unit> total, std::int64_t n, std::int64_t index) {
  return Whole<Unit>::of(share_of(total.units(), n, index));
}
template <class Unit>
constexpr Whole<Unit> share_begin(Whole<Unit> total, std::int64_t n, std::int64_t index) {
  return Whole<Unit>::of(share_begin(total.units(), n, index));
}

}  // namespace placet
