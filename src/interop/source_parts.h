// The readers of each form of source. For the sources of this folder.
#pragma once

#include <string>
#include <vector>

#include "interop/source.h"

namespace placet {

/// Settings of a YAML or JSON text. Throws InputError with file and line.
std::vector<Setting> yaml_settings(const std::string& text, const std::string& file);

/// Settings of a TOML text. Throws InputError with file and line.
std::vector<Setting> toml_settings(const std::string& text, const std::string& file);

/// Options, directives and variables of a launch script. Variables are replaced where an earlier
/// line gives them a plain value; all others are left as they are written.
std::vector<Setting> argument_settings(const std::string& text);

/// Throws InputError about a line of a source.
[[noreturn]] void fail_at_line(const std::string& file, std::size_t line,
                               const std::string& problem, const std::string& allowed);

}  // namespace placet
