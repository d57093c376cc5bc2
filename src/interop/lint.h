// What is wrong in a configuration, by rules that are data: data/lint/NAME.json.
#pragma once

#include <vector>

#include "catalog/catalog.h"
#include "interop/import.h"

namespace placet {

/// Findings on sources that were read, in the order of files and lines. A comment
/// "placet: ignore=PL003" on the line takes away what is found there.
std::vector<LintFinding> lint(const Catalog& catalog, const std::vector<Source>& sources,
                              const Imported& imported);

}  // namespace placet
