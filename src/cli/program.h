// The program behind main: from arguments to an exit status.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace placet {

/// The program with all its subcommands. `action` is set by the one that is called.
std::unique_ptr<CLI::App> make_program(Action& action);

/// Runs one call. Throws InputError for wrong arguments; help and version print and give 0.
int run(int argc, const char* const* argv);

}  // namespace placet
