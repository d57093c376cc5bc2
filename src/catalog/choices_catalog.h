// What a planner may choose from, by name: data/search (docs/formats.md). A file names words of the
// placement grammar for each role of an axis; this reader says what they mean.
#pragma once

#include <string>

#include "catalog/catalog.h"
#include "catalog/strategy_catalog.h"
#include "profile/choices.h"

namespace placet {

/// The choices of data/search/<name>.json. Throws InputError with file and key path for unknown,
/// missing or implausible keys, and for words that the grammar does not take at that place.
Choices load_choices(const Catalog& catalog, const StrategyCatalog& strategies,
                     const std::string& name);

}  // namespace placet
