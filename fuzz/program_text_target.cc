// Step programs: what is read is well-formed and prints as a text that reads as the same program.
#include "program/text.h"
#include "target.h"

namespace placet::fuzz {

std::string_view target_name() { return "program_text"; }

void read_one(std::string_view text) {
  const Program program = program_from(text, "program");
  ensure(program_from(to_text(program), "print") == program,
         "the print of a program reads as the same program");
}

}  // namespace placet::fuzz
