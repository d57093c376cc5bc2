// In place of text_read.cc where there are no files of programs, as in a page.
#include "program/text.h"
#include "units/error.h"

namespace placet {

bool is_program_text(std::string_view) { return false; }

Program program_from(std::string_view, const std::string& where) {
  throw InputError({.where = where,
                    .problem = "is read by the program placet on your machine, not by a page",
                    .allowed = "a job in words"});
}

}  // namespace placet
