// What is wrong in a configuration, by rules that are data: data/lint/NAME.json.
#pragma once

#include <vector>

#include "catalog/catalog.h"
#include "interop/import.h"

namespace placet {

/// Findings on sources that were read, in the order of files and lines, without those that are
/// ignored.
std::vector<LintFinding> lint(const Catalog& catalog, const Imported& imported);

/// Those of the findings that no comment on their line takes away: "placet: ignore=PL003".
std::vector<LintFinding> without_ignored(std::vector<LintFinding> findings,
                                         const Imported& imported);

}  // namespace placet
