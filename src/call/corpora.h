// Files of text that a run trains on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "execute/corpus.h"

namespace placet {

inline constexpr const char* kCorpusWord = "corpus=";

/// The last of the words that names one ("corpus=FILE", or "corpus=FILE#DIGEST", as a checkpoint
/// says it) read, and all those words taken out. Null: none does. Throws InputError for a file that
/// cannot be read, is empty or larger than 1 GiB, or whose bytes have another digest.
std::shared_ptr<const Corpus> taken_corpus(std::vector<std::string>& words);

}  // namespace placet
