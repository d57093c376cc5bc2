// What findings mend, written into the text of their source.
#pragma once

#include <string>
#include <vector>

#include "interop/import.h"

namespace placet {

/// A line of a source before and after; empty where it is taken out or put in.
struct ChangedLine {
  std::size_t line = 0;  // of the text as it was
  std::string before, after;

  friend bool operator==(const ChangedLine&, const ChangedLine&) = default;
};

struct FixedText {
  std::string text;
  std::vector<ChangedLine> changes;
};

/// The text with edits in it, one after the other. An edit whose place is not found as it is said
/// is left out; so is one of a line that another took out.
FixedText edited_text(const std::string& text, SourceForm form, const std::vector<LintEdit>& edits);

/// The text with the edits of the findings in it, in the order of lines. An edit whose place is not
/// found as it is said is left out, and so is a second one of the same line.
FixedText fixed_text(const std::string& text, SourceForm form,
                     const std::vector<LintFinding>& findings);

/// Where a name stands on a line and is no part of a longer one; npos: nowhere.
std::size_t name_in(const std::string& line, const std::string& name);

}  // namespace placet
