// One parser under test. A target reads any text: it gives a value or throws InputError, and
// anything else (a crash, another exception, a hang, memory without bound) is a fault.
//
// Each <name>_target.cc defines the two functions below; it is linked with libFuzzer (fuzzer.cc) or
// with the driver that replays seeds and random mutations of them (replay.cc).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "units/error.h"

namespace placet::fuzz {

/// The folder of its seeds under tests/fuzz_corpus.
std::string_view target_name();

/// Reads one text. Throws nothing but InputError.
void read_one(std::string_view text);

/// A folder of this process in memory, made at the first call and removed at the end.
const std::filesystem::path& scratch();

/// The text as a file there, for readers that take a path.
std::filesystem::path write_scratch(const std::string& name, std::string_view text);

}  // namespace placet::fuzz
