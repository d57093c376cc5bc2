// What no device holds (docs/theory.md §6.5). Inside of check/.
#pragma once

#include <vector>

#include "check/check.h"
#include "program/program.h"

namespace placet {

/// A trained parameter, or a state of one, of which some part is in no buffer that a class begins
/// with.
struct Unheld {
  StateRef state;
  int family = -1;                  // whose buffers hold some of it; -1: none do
  AxisList axes;                    // that divide those
  std::vector<std::int64_t> place;  // along these: a part that none holds; empty: it was not looked
};

/// All of them: the training of one device goes on with every part. One whose holders tell more
/// than 65,536 parts of it apart counts as one of these, as they are not looked at.
/// REQUIRES: a well-formed program.
std::vector<Unheld> find_unheld(const Program& program);

/// What is said about one, but for its name.
CheckFinding finding_on(const Program& program, const Unheld& unheld);

}  // namespace placet
