// Where results go: standard output, files, and how they look there.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "report/style.h"

namespace placet {

/// Adds --color and --width, which every subcommand understands.
void add_output_flags(CLI::App& program);

/// The style of standard output: colour and block characters on a terminal (unless NO_COLOR is set,
/// TERM is dumb, or the locale is not UTF-8), plain ASCII in a pipe. The width is that of the
/// terminal, of the environment variable COLUMNS, or 100; --color and --width win.
TextStyle output_style();

/// Writes to standard output. A reader that has gone is no error; a full disk is (InputError).
void print(const std::string& text);

/// One line on standard error: what the reader of a result should know.
void print_warning(const std::string& text);

/// Writes a file, whole or not at all: a temporary file in the same folder, put in place of what is
/// there when it is complete, so that neither a full disk nor a second writer leaves a part of it.
/// What is no regular file (a pipe, /dev/stdout) is written to as it is. Throws InputError that
/// speaks of `flag`.
void write_file(const std::string& path, const std::string& text, const std::string& flag);

}  // namespace placet
