// How lowering says no. Inside of lower/.
#pragma once

#include <string>

namespace placet {

/// Throws the InputError for a value that has no step program, or none yet.
/// `allowed`: what would be lowered instead; empty where there is nothing to say.
[[noreturn]] void refuse(const std::string& where, const std::string& value,
                         const std::string& problem, const std::string& allowed = {});

}  // namespace placet
