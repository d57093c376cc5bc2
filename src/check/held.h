// What no device holds (docs/theory.md §6.5). Inside of check/.
#pragma once

#include <vector>

#include "program/program.h"

namespace placet {

/// The trained parameters and their states of which some part is in no buffer that a class begins
/// with: the training of one device goes on with all of them. One whose holders tell more than
/// 65,536 parts of it apart counts as one of these, as they are not looked at.
/// REQUIRES: a well-formed program.
std::vector<StateRef> find_unheld(const Program& program);

}  // namespace placet
