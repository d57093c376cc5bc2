// What import and lint answer of configurations of engines, and the documents of import, lint and
// export (docs/formats.md, section 16).
#pragma once

#include <string>
#include <vector>

#include "call/sources.h"
#include "interop/export.h"
#include "interop/lint_fix.h"

namespace placet {

/// What the sources say. Throws InputError, for a word that was set and is read by none of them
/// too.
Imported read_of(const Catalog& catalog, const SourceWords& words);

/// What is wrong in the sources, as one job; where they have no error of their own, what is wrong
/// with the job that they make as well.
std::vector<LintFinding> linted_of(const Catalog& catalog, const SourceWords& words);

/// Whether one of the findings is an error.
bool has_error(const std::vector<LintFinding>& findings);

/// The text with what the findings of its file mend in it.
FixedText mended_text(const std::string& file, const ConfigurationText& source,
                      const std::vector<LintFinding>& findings);

/// The sources that are at hand with what findings mend in them, by their names; those in which
/// nothing was mended are left out.
SourceTexts mended_texts(const SourceWords& words, const std::vector<LintFinding>& findings);

std::string import_json(const Imported& imported);
/// `mended`: stands in the document where it is not empty.
std::string lint_json(const std::vector<LintFinding>& findings, const SourceTexts& mended = {});
std::string export_json(const Exported& exported);

}  // namespace placet
