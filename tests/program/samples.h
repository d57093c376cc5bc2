// Programs of tests/fuzz_corpus/program_text, and what reading says of their variants.
#pragma once

#include <string>

#include "program/program.h"

namespace placet {

/// The text of a sample: "linear" or "everything".
std::string sample_text(const std::string& name);

/// The sample as a program.
Program sample_program(const std::string& name);

/// `text` with the first `from` replaced by `to`; there is one.
std::string replaced(std::string text, const std::string& from, const std::string& to);

/// The message with which a text named "text" is refused; empty where it is read.
std::string refusal_of(const std::string& text);

/// The same for the grammar check of a program named "program".
std::string refusal_of(const Program& program);

}  // namespace placet
