// Step programs as JSON and as pages, round their text.
#pragma once

#include <string>

#include "program/program.h"

namespace placet {

/// Schema placet.program/1: mesh, classes of devices, instructions by kind, and `text`, that of the
/// program.
std::string program_json(const Program& program, const std::string& text);

/// The same as a page.
std::string program_html(const std::string& title, const Program& program, const std::string& text);

}  // namespace placet
