// Rewrites: changes to a whole step program that make another training of it on purpose
// (docs/theory.md §6.9). They are applied before movements have queues of their own.
//
//   every(AXIS, H)   devices along the axis do not add gradients up; each updates its own copy, and
//                    after every H-th step all have the mean of the parameters
//   mix(AXIS)        likewise, but after each step each has the mean of its own parameters and of
//                    those of the device before it
//   stale(K)         forward and backward use the parameters of K updates ago
//   OP(KIND, ...)    a fault (program/fault.h), such as
//                      compress(all_reduce, tensor=gradients, by=int8)
//                      mask(all_reduce, tensor=gradients, by=half)
#pragma once

#include <string>

#include "program/program.h"

namespace placet {

/// The program after a rewrite, for two steps. `where` names what asked for it, for messages.
/// Throws InputError for text that is no rewrite and for programs that it makes no sense for:
/// every and mix take whole copies of parameters and gradients along their axis.
/// Case: two devices along dp, every(dp, 2): after step 1 each has its own parameters, after step 2
/// both have the mean of the two.
Program rewritten(Program program, const std::string& text, const std::string& where);

}  // namespace placet
