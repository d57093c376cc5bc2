// What tests ask of imported sources.
#pragma once

#include <string>

#include "interop/import.h"

namespace placet {

// The value of the job's word; empty where it is not said.
std::string said_of(const Imported& imported, const std::string& word);

// Whether a fact is missing that has this part in what it is called or in the flag that gives it.
bool asks_for(const Imported& imported, const std::string& part);

// Of the key's first line in the ledger.
Fate fate_of_key(const Imported& imported, const std::string& path);

// Whether lint says a finding of this code.
bool is_found(const Imported& imported, const std::string& code);

}  // namespace placet
