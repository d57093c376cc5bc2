// What comes over a rank that has a process of its own.
#pragma once

#include "execute/rank_fault.h"

namespace placet::execute {

/// Kills or stops the process, rests, or throws the InputError of a rank that fails.
void strike_process(const RankFault& fault);

}  // namespace placet::execute
