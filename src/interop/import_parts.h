// The steps of an import. For the sources of this folder.
#pragma once

#include "interop/import.h"

namespace placet {

/// Adds a source's lines to the ledger, and the words that they say. Without a dialect every key is
/// unknown.
void read_ledger(const Source& source, const Dialect* dialect, Imported& imported);

/// Adds what the dialect takes where nothing is said, and what follows from words. What was given
/// stays.
void derive_words(const Dialect& dialect, const std::set<std::string>& unclear, Words& words,
                  const Words& given);

/// The words of the job, and what is missing in them.
void make_job(const Catalog& catalog, const Dialect& dialect, Imported& imported);

}  // namespace placet
