// Which variables of a launch script hold options, and which of them no command gets.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace placet {

/// NAME="--option value" or NAME=(--option value), over one line or several.
struct OptionList {
  std::string name;
  std::size_t first = 0;  // line, counted from 1
  std::size_t last = 0;
};

/// The lists of options of a script, where it is not longer than scripts are.
std::vector<OptionList> option_lists(const std::vector<std::string>& lines);

/// The lists whose name stands nowhere else: in no command, in no variable that a command gets, and
/// in nothing that cannot be told apart from these. Lines passed over run in no case; what they
/// name is not used by that. None where no program gets options: such a text is a part of a script,
/// or is read by another. None where names are put together, exported as they come, or the script
/// is longer than scripts are; what is sourced behind a list may use it, too. No shell is asked.
std::vector<OptionList> unused_lists(const std::vector<std::string>& lines,
                                     const std::set<std::size_t>& passed_over);

}  // namespace placet
