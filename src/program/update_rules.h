// The kernels that step a parameter by its gradient (docs/theory.md §6.3). Inside of program/.
#pragma once

#include <string>
#include <vector>

namespace placet {

/// A rule that orthogonalises matrices: it sees all of one at once, not entry by entry.
struct RuleMatrix {
  std::string dims;   // of the parameter, "expert ffn hidden"
  std::string whole;  // those of one matrix, "ffn hidden"
  int rows = 0;       // how many of these are the matrix's first side
};

struct RuleForm {
  std::vector<std::string> states;
  int number = 0;           // of the rule: names of functions end with it
  bool has_factor = false;  // gradients are multiplied by one, as where their norm is limited
  bool may_be_skipped = false;
  const RuleMatrix* matrix = nullptr;  // none: entries by themselves, whatever the dims
};

/// New states from the old ones and the gradient, then the parameter from all of them.
std::string rule_kernel(const RuleForm& form);

}  // namespace placet
