// What memory holds that nobody has written, so that a read of it shows.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include "execute/number.h"
#include "ranks/numbers.h"

namespace placet::execute {

/// Large, and different everywhere.
inline void poison(std::size_t address, Number& to) {
  bool fits = true;
  to = number_of_real(
      std::ldexp(static_cast<double>(ranks::mixed(address) >> 40U), -14) + 1000, fits);
}
inline void poison(std::size_t, float& to) { to = std::numeric_limits<float>::quiet_NaN(); }
inline void poison(std::size_t, double& to) { to = std::numeric_limits<double>::quiet_NaN(); }

}  // namespace placet::execute
