// The nearest valid spelling of a word that is not known, for error messages.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace placet {

/// The least number of insertions, deletions and replacements of a character and swaps of
/// neighbours that turn a into b, no part being edited twice (optimal string alignment).
///   edit_distance("btach", "batch") == 1       edit_distance("tp", "cp") == 1
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that the writer of `word` probably meant, or empty where none is near:
///   1. the candidate at the least edit distance, upper and lower case taken as equal, if that is
///      at most a third of the word's length, rounded up;
///   2. otherwise the shortest candidate that begins with the word ("h100" gives "h100-sxm").
/// Of equals, the first in the order given.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace placet
