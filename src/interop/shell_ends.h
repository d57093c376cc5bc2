// Where a command of a launch script ends although its writer goes on.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "interop/shell_lists.h"

namespace placet {

/// Lines of options below a command that has ended, by the line that ends it; both counted from 1.
/// A backslash joins two lines where nothing stands behind it, not even a blank, and a comment on
/// joined lines goes on to their end. Lines of `lists` and what follows their opening are no
/// commands. Case: "run.py --a \\", "# why", "  --b": line 3 is given to nothing, line 2 ends it.
/// Source: bash(1), QUOTING and COMMENTS.
std::map<std::size_t, std::size_t> cut_off_lines(const std::vector<std::string>& lines,
                                                 const std::vector<OptionList>& lists);

}  // namespace placet
