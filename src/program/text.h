// A step program as text (docs/formats.md, "Step program"): what people read and write by hand, and
// what programs of other makers come in.
//
//   placet program 1
//   mesh dp=2
//   micro-batches 1
//   dim sample 8
//   ...
//   buffer grad[u] fp32 [out in]
//   procedure backward(u, j) {
//     grad[u] = weight-gradient(d[u j], x[u j])
//     all_reduce sum grad[u] over dp
//   }
//   class all {
//     holds w[0] = parameter w
//     backward(0, 0)
//   }
//
// What is printed of a well-formed program (wellformed.h) reads back as the same program, to the
// last field: program_from(to_text(p), where) == p.
#pragma once

#include <string>
#include <string_view>

#include "program/program.h"

namespace placet {

/// REQUIRES: the numbers of the program's parts are in range, as those of a well-formed one are.
std::string to_text(const Program& program);

/// Reads a program and requires it to be well-formed. `where` names the text in messages: a file.
/// Whether a text claims to be a program: its first words, behind blanks and comments.
bool is_program_text(std::string_view text);

/// Throws InputError with the line. Time and memory are bounded by the length of the text, which is
/// at most 64 MiB.
Program program_from(std::string_view text, const std::string& where);

/// Parts of a program in the same spelling, for messages. Numbers that are out of range, and so
/// have no name, print as ?5.
std::string to_text(const Program& program, const BufferRef& buffer);
std::string to_text(const Program& program, const Instruction& instruction);
std::string to_text(const Program& program, const Call& call);
std::string to_text(const Program& program, const Initial& initial);
/// "bf16 [sample/dp token hidden]".
std::string to_text(const Program& program, const BufferType& type);

/// The reference with its braces.
std::string reference_text(const Program& program);

}  // namespace placet
