// A signed number as an index.
#pragma once

#include <cstddef>
#include <cstdint>

namespace placet {

/// Numbers of devices, stages and operators are signed; containers count unsigned.
/// REQUIRES: i >= 0.
constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace placet
