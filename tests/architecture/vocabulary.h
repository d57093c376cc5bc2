// The names that engines must not know.
//
// An engine derives everything from cuts and modes. A strategy's or a training engine's name in it,
// even in a comment, is the beginning of a special case; such names live in data/ and in
// src/interop.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "architecture/repository.h"

namespace placet::architecture {

/// Is this one of the folders that must not know names?
bool is_engine_folder(std::string_view folder);

/// One sentence for each line that holds a forbidden word, upper and lower case alike. A word
/// counts where no other letter touches it: "mics" is found in "MiCS" and "run_mics", not in
/// "dynamics". A comment line that cites a source (arXiv:, doi:, https:// or "et al.") may name it.
std::vector<std::string> forbidden_words(const SourceFile& file);

}  // namespace placet::architecture
