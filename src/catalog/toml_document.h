// TOML text as the value that the same JSON would give, so that readers know one form only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace placet {

/// Throws InputError with line and reason for malformed text, and for dates, which no file of ours
/// holds unquoted. `where` names the text in messages.
nlohmann::ordered_json parse_toml(std::string_view text, const std::string& where);

}  // namespace placet
