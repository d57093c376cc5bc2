// Flags of the subcommands that read configurations of engines.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "call/sources.h"

namespace placet {

struct ImportFlags {
  SourceWords words;
  bool json = false;
};

/// Reads standard input as the text of the source '-'; of another name it reads nothing.
void take_source(const std::string& name, SourceTexts& texts);

/// Adds SOURCES, --dialect, --json and the flags that give what sources leave out.
void add_import_flags(CLI::App& command, ImportFlags& flags);

/// What the sources say, with what the flags add. Throws InputError.
Imported import_of(const ImportFlags& flags);

}  // namespace placet
