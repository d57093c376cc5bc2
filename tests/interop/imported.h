// What tests import, and what they ask of it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "interop/import.h"

namespace placet {

// The import of one text that is read in a form.
Imported import_text(SourceForm form, const std::string& text, const Words& given = {});

// The import of texts by the names of files, which say how they are read.
Imported import_texts(const std::vector<std::pair<std::string, std::string>>& texts,
                      const Words& given = {});

// The value of the job's word; empty where it is not said.
std::string said_of(const Imported& imported, const std::string& word);

// Whether a fact is missing that has this part in what it is called or in the flag that gives it.
bool asks_for(const Imported& imported, const std::string& part);

// Of the key's first line in the ledger.
Fate fate_of_key(const Imported& imported, const std::string& path);

// Whether lint says a finding of this code.
bool is_found(const Imported& imported, const std::string& code);

}  // namespace placet
