// What a launch script says in branches of which nobody can tell whether they are taken.
#pragma once

#include <set>
#include <string>

#include "interop/import.h"

namespace placet {

/// Whether no run comes upon both: they stand in different branches of one block.
bool exclude_each_other(const Setting& one, const Setting& other);

/// Takes back the words that a source's lines, which begin at `begin` in the ledger, leave to such
/// branches. `before`: the words of the sources before it.
void mark_undecided(const Source& source, std::size_t begin, const Words& before,
                    Imported& imported);

/// Takes undecided words out of the job, with what follows from them, and asks for them.
void ask_for_undecided(Imported& imported);

/// The undecided words, and those that may follow from them.
std::set<std::string> words_of_undecided(const Imported& imported);

}  // namespace placet
