// A bound on the memory of a call, so that a job that is too large ends in a message and not in the
// hands of the kernel.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace placet {

/// Adds --memory-limit, which every subcommand understands.
void add_memory_flag(CLI::App& program);

/// Sets the bound that --memory-limit asks for; without it, four fifths of the memory that this
/// machine or control group has. Throws InputError for a size that is none. A lower limit that the
/// process has already stays.
void set_memory_limit();

/// What is said when memory runs out: the bound, and the flag that sets it.
std::string out_of_memory_text();

/// The bytes that a text spells: "8GB" (10^9), "16GiB" (2^30), also with M and T; plain digits are
/// bytes. None: it spells none.
std::optional<std::int64_t> memory_in(std::string_view text);

}  // namespace placet
