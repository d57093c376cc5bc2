// Building blocks of pages. Inside of report/html.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/judged.h"

namespace placet {

/// `text` with & < > " ' replaced, so that it stands for itself in content and in attributes.
std::string escaped(std::string_view text);

/// The whole page round a body. `title` is escaped here.
std::string page(std::string_view title, const std::string& body);

/// A section with a heading; both parts are HTML already.
std::string section(std::string_view title, const std::string& body);

/// A table. Cells are HTML already; `right` columns hold numbers, `spare` ones are left out where
/// the page is narrow. `below`: of each row, what stands under it across all columns; empty:
/// nothing does.
struct HtmlColumn {
  std::string title;
  bool right = false;
  bool spare = false;
};
std::string html_table(const std::vector<HtmlColumn>& columns,
                       const std::vector<std::vector<std::string>>& rows,
                       const std::vector<std::string>& below = {});

/// Something that opens on a click.
std::string folded(std::string_view title, const std::string& body);

/// The name of a memory category's colour class: "c-optimizer".
std::string colour_of(MemoryCategory category);

/// One stacked bar of a class against `scale`, with a line at `capacity` (0: none), as SVG.
std::string memory_bar(const MemoryClass& memory, Bytes scale, Bytes capacity);

/// Text as typed; a term of a list of facts with its value, which is HTML.
std::string code(std::string_view text);
std::string fact(std::string_view name, const std::string& html);

/// A bar of a part from 0 to 1 in a colour class, on a track, as SVG; `size`: its attributes.
std::string share_bar(double part, std::string_view colour, std::string_view size);

/// Small squares with names: what the colours of memory_bar mean.
std::string legend();

/// Findings as cards; empty if there are none.
std::string findings_html(const std::vector<Finding>& findings);

/// The verdict as a coloured line, behind what else is to be said first.
std::string verdict_html(const Derivation& derivation, const std::string& first = {});

}  // namespace placet
