// The catalogue of a call: the shipped one, and the user's own folders over it.
#pragma once

#include <CLI/CLI.hpp>

#include "catalog/catalog.h"

namespace placet {

/// Adds --data, which every subcommand understands.
void add_data_flag(CLI::App& program);

/// find_catalog() with what lies over it, the strongest first: the folders of --data, the last one
/// given first; ./placet; placet in the user's configuration folder ($XDG_CONFIG_HOME, else
/// ~/.config). Of the last two a call notices no more than whether they are there. Throws
/// InputError if --data names no folder.
Catalog called_catalog();

}  // namespace placet
