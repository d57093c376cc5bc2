// Flags as people write them: other names of a flag, and what to say to flags of other programs
// (data/words/flags.json).
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace placet {

/// Flags of a command and of the program, as they are written: "--seq". `command` may be null.
std::vector<std::string> flag_names(const CLI::App& program, const CLI::App* command);

/// Whether a word, in any spelling, is a flag of the program that the next word belongs to: --data.
bool is_followed_by_value(const std::string& word);

/// The words of a call, with flags that the called command does not know under the name that it
/// does: "--global_batch_size=8" as "--global-batch=8". Throws InputError for a flag that is known
/// to be none, with what to write instead. `called`: the command's name; empty: none is called.
std::vector<std::string> with_known_flags(const CLI::App& program, const std::string& called,
                                          int argc, const char* const* argv);

}  // namespace placet
