// From two values that differ to what is wrong: the deepest place where they part
// (docs/theory.md §6.6). Inside of check/.
#pragma once

#include "check/check.h"
#include "check/machine.h"

namespace placet {

/// A finding and what it was made from.
struct Explained {
  /// What differs in the end.
  enum class Kind : std::uint8_t { other, incomplete, terms, version };
  CheckFinding finding;
  Kind kind = Kind::other;
  std::vector<Origin> chain;      // from where it shows to where it began
  std::optional<Rational> scale;  // how many times too large it is
  bool follows = false;           // the gradient is right, the factor that limits all is not
  std::vector<NodeId> terms;      // of the sum that has one too many or too few, in order
  std::vector<int> missing;       // axes along which parts of it are missing
  std::optional<Origin> ending;   // of the chain, where it is known
  bool divides = false;           // by what is made at the ending
  bool tells_gaps = false;        // it says which micro-batches are missing
  std::vector<Origin> past;       // of a sum that is not completed: what made it and last moved it
};

/// Condition, place, expectation and difference of a finding about a tensor that should be
/// `expected`.
Explained explain(Nodes& nodes, const Machine& machine, const Program& program, NodeId expected,
                  const Tensor& found);

}  // namespace placet
