// Closed lists of the theory as lists of words, for strict readers.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/reader.h"
#include "model/dtype.h"
#include "model/model.h"
#include "placement/placement.h"

namespace placet {

/// The enumerators 0 .. count-1 of a closed list, each spelled by `spell`.
template <class Enum, class Spell>
std::vector<std::string> words_of(int count, Spell spell) {
  std::vector<std::string> words;
  words.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) words.emplace_back(spell(static_cast<Enum>(i)));
  return words;
}

/// Reads one enumerator of such a list.
template <class Enum, class Spell>
Enum read_enum(const Reader& reader, int count, Spell spell) {
  return static_cast<Enum>(reader.one_of(words_of<Enum>(count, spell)));
}

inline constexpr int kDtypeCount = 12;
inline constexpr int kModeCount = 5;

/// The parts of a text between separators, empty ones included; at least one. Case: "a,,b" at ',':
/// "a", "", "b".
std::vector<std::string> split_words(const std::string& text, char separator);

/// Spellings of all number formats.
std::vector<std::string> dtype_words();

/// A number format, in any of its spellings.
Dtype read_dtype(const Reader& reader);
Dtype read_dtype(const std::string& text, const std::string& where);

/// A cut.
Cut read_cut(const Reader& reader);

/// A fraction: a whole number, or the text "3/4".
Rational read_fraction(const Reader& reader);

/// The fraction that a text spells, "3" or "3/4"; none: it spells none.
std::optional<Rational> fraction_in(std::string_view text);

}  // namespace placet
