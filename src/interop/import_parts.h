// The steps of an import. For the sources of this folder.
#pragma once

#include "interop/import.h"

namespace placet {

/// A script may call one training after the other: commands that each say at least half of what
/// the longest says, of the same things and differently, or are called with other configurations.
/// Which one is meant is asked for; the given word `command` tells it by its line, and is taken. Of
/// other commands, which convert or copy something, only what launches is read, where the one that
/// is read says nothing of it. Throws InputError for another line.
void choose_command(const Catalog& catalog, const Dialect& dialect, Source& source, Words& given,
                    std::vector<MissingFact>& missing);

/// Adds a source's lines to the ledger, and the words that they say. Without a dialect every key is
/// unknown.
void read_ledger(const Source& source, const Dialect* dialect, Imported& imported);

/// What was left open ("auto", a variable) is understood where its word is known all the same:
/// given by a flag, said by another source, or worked out from others.
void settle_open(Imported& imported);

/// Takes back what was understood and is beyond what a job can say.
void mark_beyond(const Dialect& dialect, Imported& imported);

/// Adds what the dialect takes where nothing is said, and what follows from words. What was given
/// stays.
void derive_words(const Dialect& dialect, const std::set<std::string>& unclear, Words& words,
                  const Words& given);

/// The same of a dialect that another one leads: its words that hold all the same.
void derive_beside(const Dialect& dialect, const std::set<std::string>& unclear, Words& words,
                   const Words& given);

/// What the dialect asks for where the sources leave it open.
void add_needs(const Dialect& dialect, Imported& imported);

/// Adds the sizes that the dialect takes of models that words name, as WORD-SIZE, and as WORD-model
/// the model's name. The other one says in the ledger what was taken so.
void add_named_sizes(const Catalog& catalog, const Dialect& dialect, Words& words);
void note_named_sizes(const Dialect& dialect, Imported& imported);

/// Adds the sizes of the model that the words name, where nothing is said of them.
void add_model_words(const Catalog& catalog, Words& words);

/// In place of a path that is not on this machine the model of the catalogue that is called as one
/// of its last parts is, if there is one; the ledger says so.
void take_model_by_path(const Catalog& catalog, Words& words, std::vector<LedgerLine>& ledger);

/// The job's model: as it is named, or described by the words. What is missing is asked for: a
/// model that is not known or not at hand. Sizes that the sources say and a named model has
/// otherwise are marked in the ledger.
void settle_model(const Catalog& catalog, const Dialect& dialect, Imported& imported);

/// The batches of a ramp as the word `batch-ramp` says it: "START STEP SAMPLES", which ends at
/// `global-batch`, or "AT:BATCH AT:BATCH". Empty where it says none, or none that comes out even.
/// Case: "16 8 1000" up to 32: 16, 24, 32.
std::vector<long long> batches_of_ramp(const Words& words);

/// Whether a job has a word of this name.
bool is_job_word(const std::string& word);

/// The words of the job, and what is missing in them.
void make_job(const Catalog& catalog, const Dialect& dialect, Imported& imported);

}  // namespace placet
