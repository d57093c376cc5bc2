// How much of a long test is run: a part drawn by the same seeds in daily work, all of it where
// PLACET_TEST_AMOUNT=all (./dev test full).
#pragma once

#include <cstdlib>
#include <string_view>

namespace placet::testing {

inline bool runs_all() {
  const char* amount = std::getenv("PLACET_TEST_AMOUNT");
  return amount != nullptr && std::string_view(amount) == "all";
}

/// `all` cases, or a `part`-th of them, rounded up.
inline int amount_of(int all, int part) { return runs_all() ? all : (all + part - 1) / part; }

}  // namespace placet::testing
