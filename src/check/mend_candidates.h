// Changes to one instruction that might mend a program (docs/theory.md §6.6). Inside of check/.
#pragma once

#include <string>
#include <vector>

#include "check/suspects.h"

namespace placet {

/// Where a step stands: in a body, inside loops.
struct MendPlace {
  int body = 0;                    // position among procedures, then classes
  std::vector<std::size_t> loops;  // positions of the loops around it, from outside
  std::size_t at = 0;
};

/// Steps put before the one at a place, or in its stead.
struct Splice {
  std::size_t at = 0;  // of the steps around the place; may be one past their end
  bool removes = false;
  std::vector<Step> puts;
};

struct MendCandidate {
  MendPlace place;
  std::vector<Splice> splices;  // by position
  std::string change;
};

/// The candidates, the likeliest first, each once. `multiple` is the number of a kernel y = x that
/// instructions with a factor may call.
std::vector<MendCandidate> mend_candidates(const Program& program,
                                           const std::vector<Suspect>& suspects, int multiple);

/// A body by its number.
const std::vector<Step>& body_of(const Program& program, int body);

/// The steps that a place is one of.
std::vector<Step>& steps_at(Program& program, const MendPlace& place);

/// "procedure backward.block", "class stage-0".
std::string body_name(const Program& program, const MendPlace& place);

}  // namespace placet
