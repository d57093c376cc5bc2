// Configurations of engines as the words of a job: --from of every subcommand that takes a job, and
// the subcommands that read sources.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "catalog/job.h"
#include "interop/import.h"

namespace placet {

/// Sources, and what callers add to them.
struct SourceWords {
  std::vector<std::string> sources;
  SourceTexts texts;  // of those that are at hand; all others are files
  std::string dialect, model, cluster, engine, placement;
  std::vector<std::string> set;                            // WORD=VALUE
  std::string world, sequence, global_batch, micro_batch;  // whole numbers
};

/// What the sources say, with what is added. Throws InputError.
Imported imported_of(const Catalog& catalog, const SourceWords& words);

/// What of a job is asked of sources.
enum class AskedOf {
  all,           // throws InputError that names the flags where something is missing
  what_to_train  // model, batch, formats, optimizer and engine; where it is placed is not taken
};

/// The words of the job that the sources say; in messages they are of the first source. `unread`
/// gets what was set and is no word of theirs.
JobRequest request_of_sources(const Catalog& catalog, const SourceWords& words, AskedOf asked,
                              std::set<std::string>& unread);

/// What the rules of composition, and the engine's own refusals, say of the job that sources make,
/// where they make one: findings of code PL100, at the first setting that places something.
std::vector<LintFinding> findings_of_job(const Catalog& catalog, const Imported& imported);

/// Throws InputError for words that were set and that no dialect of the sources has.
void require_all_read(const Imported& imported);

}  // namespace placet
