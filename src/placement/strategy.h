// The words of the placement grammar that come from data: strategies, and the names of
// realisations. A word is worth nothing but the components it sets and those it suggests; replace
// every word by another and the same placements come out (docs/theory.md §1, docs/formats.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "placement/placement.h"
#include "units/error.h"

namespace placet {

/// Some components of a How; what is empty is left to others.
struct PartialHow {
  std::optional<Cut> cut;
  std::array<std::optional<Mode>, 4> modes;  // by state
  std::optional<Keep> keep;
  std::optional<std::int64_t> prefetch;
  std::array<std::optional<Offload>, 4> offload;  // by state
  std::optional<Medium> update;
  std::optional<IndexSet> tensor_indices;
  std::optional<RealisationWord> schedule;   // of an axis, never of a class
  std::optional<RealisationWord> attention;  // likewise
  std::optional<std::string> method;         // likewise: what else is done, see AxisPlacement

  friend bool operator==(const PartialHow&, const PartialHow&) = default;
};

/// What a word says of one class of tensors, beside what it says of the axis.
struct ClassPart {
  Selector selector;
  PartialHow sets;
  PartialHow suggests;

  friend bool operator==(const ClassPart&, const ClassPart&) = default;
};

/// What a term means. Two terms that set one component differently clash; a suggestion holds only
/// where nobody sets the component, and the first of several holds.
struct Meaning {
  PartialHow sets;
  PartialHow suggests;
  std::vector<ClassPart> classes;

  friend bool operator==(const Meaning&, const Meaning&) = default;
};

/// A name for a part of an axis placement. No formula, no number, no collective.
struct Strategy {
  std::string name;
  std::string description;
  std::vector<std::string> sources;
  Meaning meaning;
  /// Terms under which this word prints, if it is a second name for something ("tp+sp");
  /// empty: it prints under its own name.
  std::string prints_as;

  friend bool operator==(const Strategy&, const Strategy&) = default;
};

/// The name of a realisation: how a cut is carried out. What it does is read elsewhere; the grammar
/// needs only its place and the number of its arguments.
struct Realisation {
  enum class Kind : std::uint8_t { schedule, attention };
  Kind kind = Kind::schedule;
  std::string name;
  std::string description;
  std::vector<std::string> sources;
  std::size_t least_arguments = 0;
  std::size_t most_arguments = 0;
  struct Range {
    std::string what;  // is counted, for messages: "stages per device"
    std::int64_t least = 0, most = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  std::vector<Range> ranges = {};  // of the arguments; of those behind the list: any number
  Meaning meaning;                 // without the word itself

  friend bool operator==(const Realisation&, const Realisation&) = default;
};

/// A word whose file, one of the user's own, cannot be read: who writes the word is told why.
struct UnreadableWord {
  std::string name;
  InputFault fault;

  friend bool operator==(const UnreadableWord&, const UnreadableWord&) = default;
};

/// All words, each list in the order of the names.
struct Vocabulary {
  std::vector<Strategy> strategies;
  std::vector<Realisation> realisations;
  std::vector<UnreadableWord> unreadable = {};

  friend bool operator==(const Vocabulary&, const Vocabulary&) = default;
};

/// The strategy or realisation of that name; null if there is none.
const Strategy* find_strategy(const Vocabulary& vocabulary, std::string_view name);
const Realisation* find_realisation(const Vocabulary& vocabulary, std::string_view name);

/// Throws the InputError of a word whose file cannot be read; nothing for any other.
void refuse_unreadable(const Vocabulary& vocabulary, std::string_view name);

/// Sorts the lists by name. Throws InputError where a name is not a word ([a-z0-9][a-z0-9-]*), is
/// given twice, or is one that the grammar keeps for itself (a cut, an option).
Vocabulary ordered(Vocabulary vocabulary);

/// Where two terms set one component differently.
struct Clash {
  std::size_t earlier = 0;  // positions in the list of terms
  std::size_t later = 0;
  std::string component;      // "optimizer", "cut of experts"
  std::string earlier_value;  // "R"
  std::string later_value;

  friend bool operator==(const Clash&, const Clash&) = default;
};

/// Where the last of the terms clashes with an earlier one, if it does; and the first clash of all.
std::optional<Clash> clash_of_last(std::span<const Meaning> terms);
std::optional<Clash> clash_of(std::span<const Meaning> terms);

/// Terms put together. The axis's `how` is empty if no term sets or suggests a cut.
struct Composed {
  std::optional<How> how;
  std::vector<Override> overrides;  // classes that terms speak of, in the order of the selectors
  std::optional<RealisationWord> schedule;
  std::optional<RealisationWord> attention;
  std::optional<std::string> method;
};

/// The terms of an axis. REQUIRES: they do not clash. A component that nobody names has the cut's
/// default mode (default_modes) or no option; a class whose words name no cut starts from the cut
/// and the modes of the axis.
/// Case: sets {R,S,R,-} suggests batch, with sets sequence: sequence(R,S,R,S).
Composed compose(std::span<const Meaning> terms);

/// What a term means where it is written for one class: what it says of that class if it does, else
/// what it says in general.
Meaning for_class(const Meaning& term, const Selector& selector);

/// The terms of one class, each by for_class, on an axis whose own How is `axis`.
How compose_class(std::span<const Meaning> terms, const How& axis);

/// Spelling of a class in the grammar: "experts", "blocks 0-3", "checkpoints".
std::string spell(const Selector& selector);

}  // namespace placet
