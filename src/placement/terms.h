// Single terms of the placement grammar: from their spelling to what they set, and back.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "placement/source_text.h"
#include "placement/strategy.h"

namespace placet {

/// A part of a text and where it stands.
struct Spelling {
  std::string text;
  std::size_t at = 0;
};

/// A term as it is written.
struct Term {
  Spelling word;
  std::vector<Spelling> arguments;
  bool has_arguments = false;  // has parentheses
  std::size_t end = 0;         // one past its last character
};

/// What a term means. Throws InputError at its place if the word is not known, or its arguments are
/// not what the word takes.
Meaning meaning_of(const Term& term, const Vocabulary& vocabulary, const SourceText& source);

/// Whether the term is the option that asks for a tensor cut.
bool needs_tensor_cut(const Term& term);

/// A term to be printed, with what it means.
struct PrintedTerm {
  std::string text;
  Meaning meaning;
  bool is_raw = false;  // a raw cut
};

/// Options that lead from `have` to `want` where `have` leaves a component open, in the order of
/// printing. Components that `have` sets otherwise are left as they are.
std::vector<PrintedTerm> options_between(const How& have, const How& want);

/// A realisation with its arguments. REQUIRES: the vocabulary has the word, else InternalError.
PrintedTerm print_realisation(const RealisationWord& word, const Vocabulary& vocabulary);

/// The raw cut of a How.
PrintedTerm print_raw(const How& how);

}  // namespace placet
