// Versions of what the catalogue holds: "name@version".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace placet {

/// Whether version `a` is older than `b`: runs of digits compare as numbers, the rest as text.
/// Case: "0.9" is older than "0.19".
bool is_older_version(std::string_view a, std::string_view b);

/// Of `names` the one that `name` speaks of: itself, else the newest "name@version"; empty: none.
std::string newest_of_name(const std::vector<std::string>& names, const std::string& name);

}  // namespace placet
