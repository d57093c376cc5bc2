// Files of text that a run trains on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "execute/corpus.h"

namespace placet {

/// The text of a file that the user names. Throws InputError for one that cannot be read, is empty
/// or larger than 1 GiB, or has a name that is not UTF-8.
std::shared_ptr<const Corpus> corpus_of_file(const std::string& path);

/// The text that a checkpoint's words name ("corpus=FILE#DIGEST"), and the word taken out. Null:
/// none does. Throws InputError as above, and where the text has another digest.
std::shared_ptr<const Corpus> taken_corpus(std::vector<std::string>& words);

}  // namespace placet
