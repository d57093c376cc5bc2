// Functions of kernels that have a meaning of their own, and the form that their calls must have
// (docs/formats.md §10). All others are any functions of what they are given.
#pragma once

#include <string>

#include "program/kernel.h"

namespace placet {

/// What the call lacks or has too much of: "needs 2 operands"; empty: nothing, or the function has
/// no meaning of its own.
/// Case: inv(a[], b[]): "needs one operand".
std::string misuse_of(const Statement& statement);

}  // namespace placet
