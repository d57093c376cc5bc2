// Conditions and derived words in data files. For the sources of this folder.
#pragma once

#include <vector>

#include "catalog/reader.h"
#include "interop/dialect.h"

namespace placet {

/// The conditions that a list holds.
std::vector<WordCondition> read_conditions(const Reader& list);

/// The conditions under a key; none without it.
std::vector<WordCondition> conditions_at(const Reader& object, const char* key);

/// A derived word.
DerivedWord read_derived(const Reader& object);

}  // namespace placet
