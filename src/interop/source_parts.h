// The readers of each form of source. For the sources of this folder.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "interop/source.h"

namespace placet {

/// Settings of a YAML text, aliases played out. Throws InputError with file and line.
std::vector<Setting> yaml_settings(const std::string& text, const std::string& file);

/// Settings of a JSON or HJSON text. Throws InputError with file and line.
std::vector<Setting> json_settings(const std::string& text, const std::string& file);

/// Puts values of other settings in place of "${path}" in texts ("${.sibling}", "${..parents}" by
/// their places too), where these are plain. All else stays as it is written.
void resolve_references(std::vector<Setting>& settings);

/// Settings of a TOML text. Throws InputError with file and line.
std::vector<Setting> toml_settings(const std::string& text, const std::string& file);

/// Options, directives and variables of a launch script.
struct ScriptSettings {
  std::vector<Setting> settings;
  std::vector<Setting> idle;  // those of branches that are not taken, and of lists nobody uses
  std::vector<BranchBlock> blocks;
  /// Words in front of options: programs, scripts with and without their paths, and each with the
  /// word before it ("trl sft").
  std::set<std::string> commands;
  /// Files that those are called with, by the program, and values of its short options ("-np").
  std::vector<Setting> operands;
  std::vector<ScriptFile> written;
};

/// Variables are replaced where an earlier line gives them a plain value; all others are left as
/// they are written, and branches that depend on them may all be taken.
ScriptSettings script_settings(const std::string& text);

/// Throws InputError about a line of a source.
[[noreturn]] void fail_at_line(const std::string& file, std::size_t line,
                               const std::string& problem, const std::string& allowed);

}  // namespace placet
