// Words as a shell reads them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "interop/source.h"

namespace placet {

/// A word that a shell takes as it is: in single quotes where it has characters other than letters,
/// digits and "_=+.,:/@%-". A single quote itself stands in double ones.
std::string quoted_word(const std::string& word);

/// The words of an option's value, each quoted where it needs it: "a 'b;c'". Blanks part them, but
/// where the setting says its words itself.
std::string quoted_words(const Setting& setting);

/// The names of the variables in a word, "${A}/x$B"; none: it holds more than plain text and these,
/// as "$1" and "$(id)" do.
std::optional<std::vector<std::string>> variables_in(const std::string& word);

/// As quoted_words, for a value that a script has said: variables stay what they are, and a shell
/// stops where one is not set. Only for words of which variables_in() knows all.
std::string quoted_around_variables(const Setting& setting);

/// Whether a place of a script stands inside of quotes that begin before it.
bool is_inside_quotes(const std::string& script, std::size_t place);

}  // namespace placet
