// The letters of the grammar for modes, as tests spell them.
#pragma once

#include "placement/placement.h"

namespace placet {

inline constexpr Mode R = Mode::replicated;
inline constexpr Mode S = Mode::sharded;
inline constexpr Mode G = Mode::sharded_gather;
inline constexpr Mode M = Mode::materialized;
inline constexpr Mode O = Mode::offloaded;

}  // namespace placet
