// What no device holds (docs/theory.md §6.5). Inside of check/.
#pragma once

#include <vector>

#include "program/program.h"

namespace placet {

/// The trained parameters and their states of which some part is in no buffer that a class begins
/// with: the training of one device goes on with all of them. Over more than 65,536 places along
/// the axes that divide one, each axis is looked at by itself.
/// REQUIRES: a well-formed program.
std::vector<StateRef> find_unheld(const Program& program);

}  // namespace placet
