// What a machine holds after a step beside what the reference has. Inside of check/.
#pragma once

#include <cstddef>

#include "check/machine.h"
#include "check/reference_values.h"

namespace placet {

class StepComparison {
 public:
  /// REQUIRES: all outlive it.
  StepComparison(const Program& program, Nodes& nodes, Machine& machine,
                 const ReferenceValues& reference)
      : program_(program), nodes_(nodes), machine_(machine), reference_(reference) {}

  /// Whether every buffer that the program has a state or a result in holds what the reference has.
  bool holds_all();

  /// Whether a buffer of a class holds what the reference has for one of its tensors. `typed`: its
  /// shape.
  bool holds(int c, const Initial& buffer, std::size_t piece, const Content& typed);

  /// Whether the tensor is there, in the division that its buffer is to have.
  static bool is_placed(const Content* content, const Content& typed, std::size_t piece);

 private:
  bool holds(int c, const Initial& buffer);

  const Program& program_;
  Nodes& nodes_;
  Machine& machine_;
  const ReferenceValues& reference_;
};

}  // namespace placet
