// A reference worked out once, for the programs that claim to be it: the plans of one job are the
// same training (docs/theory.md §6.6). Inside of check/.
#pragma once

#include <vector>

#include "check/reference_values.h"

namespace placet {

class KnownReference {
 public:
  /// Works out so many steps.
  KnownReference(const Program& program, int steps);

  /// Whether the program's reference is this one, to the letter: its text, dims and kernels.
  bool is_of(const Program& program) const;

  /// Those of the reference; whoever goes on from them takes a copy.
  const Nodes& nodes() const { return nodes_; }
  const std::vector<ReferenceValues::After>& after() const { return after_; }

 private:
  Reference reference_;
  std::vector<LogicalDim> dims_;
  std::vector<Kernel> kernels_;  // up to the last one that the reference calls
  Nodes nodes_{Names::left_out};
  std::vector<ReferenceValues::After> after_;  // by step
};

}  // namespace placet
