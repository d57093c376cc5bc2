// Placements as text (docs/formats.md): what people write, and the one canonical way to print it.
//
//   placement = axis { axis }                                outermost (slowest links) first
//   axis  = NAME "=" DEGREE [ "[" shares "]" ] ":" how { ";" CLASS ":" how }
//   shares = share { "," share }     share = run | "(" run { "," run } ")" "x" COUNT
//   run   = INT [ "x" COUNT ]
//   how   = term { "+" term }        term = WORD [ "(" arg { "," arg } ")" ]
//   CLASS = a tensor class | checkpoints | blocks INT-INT
//
// A term is a strategy or a realisation (words of the vocabulary), a raw cut with four modes, as
// batch(S*,S,S,R), or an option: keep, keep-step, sp, offload(STATE[=FRACTION][,nvme]),
// update(host|device), prefetch(K). A tensor cut of other indices than the usual ones names them
// after the modes: tensor(S,S,S,R,hidden). Whitespace is free.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "placement/placement.h"
#include "placement/strategy.h"

namespace placet {

/// What a text may hold at most.
inline constexpr std::size_t kLongestPlacement = std::size_t{64} * 1024;  // characters
inline constexpr std::size_t kMostAxes = 64;
inline constexpr std::int64_t kLargestDegree = std::int64_t{1} << 31;
inline constexpr std::size_t kMostShares = 16384;
inline constexpr std::size_t kMostTerms = 64;    // of one how
inline constexpr std::size_t kMostClasses = 64;  // of one axis

/// The placement that a text describes. Throws InputError with the place (character, counted from
/// 1, and an excerpt with a caret), what was allowed and the nearest spelling. Whether the
/// placement means anything (modes, divisibility) is not asked here: that is a judgement, not an
/// error.
///   cp=4:ring+w    is sequence(R,S,R,S) carried out by ring, if w sets R,S,R and suggests batch
Placement parse_placement(std::string_view text, const Vocabulary& vocabulary);

/// The canonical text: per axis the fewest terms (a raw cut counts as four, one for each mode), of
/// those the fewest words that also speak of a class they do not hold for, of those the fewest
/// characters, of those the first in alphabetical order; shares one by one. Terms
/// stand in a fixed order: realisations, strategies, a raw cut, options.
/// parse_placement(print_placement(p, v), v) == p for every p that parse_placement can give, and
/// for every p within the limits above whose realisations the vocabulary knows, whose offloads lie
/// on host or nvme with a fraction in (0, 1], whose update is not on nvme, and whose tensor_indices
/// are the default outside tensor cuts and name only cuttable indices within.
std::string print_placement(const Placement& placement, const Vocabulary& vocabulary);

/// One axis of it: "tp=8:tp+sp".
std::string print_axis(const AxisPlacement& axis, const Vocabulary& vocabulary);

/// A raw cut: "tensor(S,S,S,R)". `indices` are named if they are not kTensorIndices.
std::string print_cut(Cut cut, const Modes& modes, IndexSet indices = kTensorIndices);

/// Whether the grammar keeps a word for itself: a cut or an option.
bool is_reserved_word(std::string_view word);

}  // namespace placet
