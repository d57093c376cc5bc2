// The grammar of step programs: what every reader of one may rely on (docs/theory.md §6.2). It is
// asked of programs that come in as text, and between the passes of lowering.
//
// A well-formed program can be read without looking back: all numbers are in range, indices lie
// where their families have elements, buffers fit the kernels and collectives that use them, every
// device has one class. It need not be right: what it computes is judged elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/program.h"

namespace placet {

/// Lines of a text in which steps stand: of each body in the order of its text, loops before what
/// they hold.
struct ProgramLines {
  std::vector<std::vector<int>> procedures;
  std::vector<std::vector<int>> classes;
};

struct GrammarRequest {
  std::string where;  // the file, or the pass after which it is asked
  /// The most instructions, calls and rounds of loops that one class may execute in a step.
  std::int64_t most_steps = std::int64_t{1} << 26;
  const ProgramLines* lines = nullptr;  // of the text, if there is one
};

/// Throws InputError at the first fault, with its place: in the kernels, the reference, the
/// buffers, the procedures, the classes, in this order. The list of rules is docs/theory.md §6.2.
void require_wellformed(const Program& program, const GrammarRequest& request);

}  // namespace placet
