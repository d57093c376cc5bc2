// Spaces without any placement in them: trees of choices whose leaves cost what random tables say.
// What branch and bound finds there is compared with looking at every leaf.
#pragma once

#include <cstdint>
#include <string>

namespace placet::testing {

/// Draws one space from the seed, searches it, and looks at all of its leaves. Empty if both agree:
/// on the best plans, and on visited + bounded + rejected; else what differs.
std::string compare_on_table(std::uint32_t seed);

}  // namespace placet::testing
