// Functions of kernels that have a meaning of their own, and the form that their calls must have
// (docs/formats.md §10). All others are any functions of what they are given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "program/kernel.h"

namespace placet {

/// A function by its name: "route.2'0" is the derivative of `route` by its operand 0, with number
/// 2.
struct FunctionName {
  std::string_view stem;  // a part of the name that was given
  std::int64_t number = 0;
  int derivative = -1;  // operand; -1: the function itself
};
FunctionName function_name(std::string_view name);

/// What the call lacks or has too much of: "needs 2 operands"; empty: nothing, or the function has
/// no meaning of its own.
/// Case: inv(a[], b[]): "needs one operand".
std::string misuse_of(const Statement& statement);

}  // namespace placet
