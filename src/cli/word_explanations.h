// What the catalogue knows of a word: entries of data/words, and the files of what has one of its
// own (strategies, devices, links, engines ...).
#pragma once

#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "report/explanation.h"

namespace placet {

/// All meanings of a word, in whatever letters; of a second name ("h100") those of the name. Throws
/// InputError with the nearest word if there is none.
std::vector<Explanation> explanations_of(const Catalog& catalog, const std::string& word);

/// All words that can be explained, sorted.
std::vector<std::string> explained_words(const Catalog& catalog);

}  // namespace placet
