// What a norm keeps of the entries that it sees together.
#pragma once

#include <cstdint>

namespace placet {

/// Numbers that a layer norm has of each token: mean and reciprocal standard deviation. A root mean
/// square norm has the second alone.
inline constexpr std::int64_t kMoments = 2;

}  // namespace placet
