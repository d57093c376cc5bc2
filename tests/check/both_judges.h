// Faults of one kind judged by the checker and by the algebraic run.
#pragma once

#include <string>
#include <utility>

#include "program/program.h"

namespace placet::testing {

/// How many of the faults that a text matches leave the program equal, and how many do not. Fails
/// the test where the judges do not agree. Case: {"rescale(norm, by=2, rank=2"}: without its end.
std::pair<int, int> equal_and_wrong(const Program& program, const std::string& fault);

}  // namespace placet::testing
