// Step programs as JSON and as pages, round their text.
#pragma once

#include <string>
#include <vector>

#include "program/fault.h"
#include "program/program.h"

namespace placet {

/// Schema placet.program/1: mesh, classes of devices, instructions by kind, and `text`, that of the
/// program.
std::string program_json(const Program& program, const std::string& text);

/// The same as a page.
std::string program_html(const std::string& title, const Program& program, const std::string& text);

/// What a fault matches in the program as the faults before it have left it.
struct ListedFault {
  std::string text;
  std::vector<FaultMatch> matches;
};
std::string faults_text(const std::vector<ListedFault>& faults);
/// Schema placet.faults/1.
std::string faults_json(const std::vector<ListedFault>& faults);

}  // namespace placet
